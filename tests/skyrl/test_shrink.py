"""Cassettes of SkyRL's, shrunk: they replay what is asked for again."""

from __future__ import annotations

import asyncio

import pytest

import rollout_cassettes as rc
from tests.skyrl.conftest import plain


def train(generator, batches):
    return [plain(asyncio.run(generator.generate(each))) for each in batches]


def columns(output, rows):
    """Return the columns of these rows."""
    named = {**output, **output["trajectory_time_splits"]}
    return {n: [c[row] for row in rows] for n, c in named.items() if isinstance(c, list)}


@pytest.mark.parametrize("turns", [1, 2])
def test_it_replays_what_is_asked_for_again(batch, make_generator, path, tmp_path, turns):
    """Cache mode: the first prompt of each step, with its trajectories and all of their turns."""
    with rc.record(path=path):
        live = train(make_generator(turns), [batch(1, "abc"), batch(2, "def")])
    shrunk = rc.shrink(path, tmp_path / "small", rows=2 * turns)
    assert (shrunk.rows, shrunk.rows_before) == (4 * turns, 12 * turns)
    generator = make_generator(turns)
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        again = train(generator, [batch(1, "a"), batch(2, "d")])
    assert generator.calls == []
    for whole, part in zip(live, again, strict=True):
        assert columns(part, range(2 * turns)) == columns(whole, range(2 * turns))
        assert len(part["response_ids"]) == 2 * turns
        assert part["rollout_metrics"] == whole["rollout_metrics"]


def test_rows_of_a_prompt_need_not_follow_each_other(batch, make_generator, path, tmp_path):
    """Trajectories that come back in another order say whose they are."""

    class Backwards(make_generator):
        async def generate(self, input_batch):
            output = await super().generate(input_batch)
            reversed_ = {n: c[::-1] for n, c in output.items() if isinstance(c, list)}
            return {**output, **reversed_}

    with rc.record(path=path):
        (live,) = train(Backwards(turns=2), [batch(1, "ab")])
    rc.shrink(path, tmp_path / "small", rows=4)
    with rc.replay(path=tmp_path / "small"):
        (again,) = train(Backwards(turns=2), [batch(1, "a")])
    assert again["response_ids"] == live["response_ids"][4:]
    assert again["trajectory_ids"] == [["a", 1], ["a", 1], ["a", 0], ["a", 0]]


def test_a_prompt_without_rows_goes(batch, make_generator, path, tmp_path):
    """As one whose trajectories all failed; the request loses it too."""

    class Dropping(make_generator):
        async def generate(self, input_batch):
            output = await super().generate(input_batch)
            return {n: c[4:] if isinstance(c, list) else c for n, c in output.items()}

    with rc.record(path=path):
        (live,) = train(Dropping(turns=2), [batch(1, "abc")])
    assert rc.shrink(path, tmp_path / "small", rows=4).rows_before == 8
    with rc.replay(path=tmp_path / "small"):
        (again,) = train(Dropping(turns=2), [batch(1, "b")])
    assert again["response_ids"] == live["response_ids"][:4]


def test_without_ids_prompts_are_equal_rows(batch, make_generator, path, tmp_path):
    """As of a generator that is called by itself."""

    def asked(prompts):
        return batch(1, prompts, n=3) | {"trajectory_ids": None}

    class Bare(make_generator):
        async def generate(self, input_batch):
            ids = [None for _ in input_batch["prompts"]]
            return await super().generate({**input_batch, "trajectory_ids": ids})

    with rc.record(path=path):
        (live,) = train(Bare(), [asked("ab")])
    assert rc.shrink(path, tmp_path / "small", rows=1).rows == 3
    with rc.replay(path=tmp_path / "small"):
        (again,) = train(Bare(), [asked("a")])
    assert again["response_ids"] == live["response_ids"][:3]


def test_it_is_repeated_for_any_number_of_prompts(batch, make_generator, path, tmp_path):
    with rc.record(path=path):
        (live,) = train(make_generator(), [batch(1, "ab")])
    rc.shrink(path, tmp_path / "small", rows=2)
    with rc.replay(path=tmp_path / "small", mode="repeat"):
        (again,) = train(make_generator(), [batch(5, "xyz")])
    assert again["response_ids"] == live["response_ids"][:2] * 3


def test_fields_are_columns(batch, make_generator, path, tmp_path):
    """All but those by which a replay tells rows apart."""
    with rc.record(path=path):
        (live,) = train(make_generator(turns=2), [batch(1)])
    shrunk = rc.shrink(path, tmp_path / "small", fields=["rewards", "prompt_token_ids"], rows=4)
    assert "rollout_logprobs" in shrunk.dropped
    with rc.replay(path=tmp_path / "small"):
        (again,) = train(make_generator(turns=2), [batch(1, "a")])
    assert again == {
        name: live[name][:4]
        for name in ("prompt_token_ids", "response_ids", "rewards", "trajectory_ids")
    }
    with pytest.raises(rc.CassetteError, match="no field 'response_ids'"):
        rc.shrink(path, tmp_path / "other", fields=["response_ids"])


def test_rows_that_belong_to_nobody_can_not_be_cut(base, batch, path, tmp_path):
    """It is cut into steps all the same, and these replay."""

    class Merging(base.GeneratorInterface):
        async def generate(self, input_batch):
            return {"response_ids": [[1]], "trajectory_ids": None, "rollout_metrics": None}

    with rc.record(path=path):
        live = train(Merging(), [batch(1), batch(2)])
    with pytest.raises(rc.CassetteError, match="returned 1 rows for 4") as caught:
        rc.shrink(path, tmp_path / "small", rows=2)
    assert "Choose steps" in str(caught.value)
    rc.shrink(path, tmp_path / "small", steps=[2])
    with rc.replay(path=tmp_path / "small"):
        assert train(Merging(), [batch(2)]) == live[1:]
