"""Cassettes of OpenRLHF's, shrunk: they replay what is asked for again."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.openrlhf.conftest import plain


def call(generator, times):
    return [plain(generator.generate_samples()) for _ in range(times)]


def test_it_replays_what_is_asked_for_again(generator, path, tmp_path):
    """Cache mode: the first prompt of each call, to the end of the prompts."""
    with rc.record(path=path):
        live = call(generator("abcde"), 3)
    assert [given[3] for given in live] == [False, False, True]
    shrunk = rc.shrink(path, tmp_path / "small", rows=3)
    assert (shrunk.rows, shrunk.rows_before) == (6, 10)
    replayed = generator("ace", batch_size=1)
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        again = call(replayed, 3)
    assert [samples for samples, *_ in again] == [samples[:2] for samples, *_ in live]
    assert [tuple(rest) for _, *rest in again] == [
        (None, 1, False),
        (None, 1, False),
        (None, 1, True),
    ]
    assert replayed.vllm_engines[0].prompts == []
    assert replayed._dataloader_iter is None


def test_prompts_are_known_in_whatever_order_their_experiences_come(generator, path, tmp_path):
    """The real generator takes them from its engines as they are ready."""
    recorded = generator("abc", batch_size=3)
    original = recorded._made if hasattr(recorded, "_made") else recorded._generate_vllm

    def reversed_groups(*args, **kwargs):
        samples, *rest = original(*args, **kwargs)
        return [samples[at + nth] for at in (4, 2, 0) for nth in (0, 1)], *rest

    setattr(recorded, original.__name__, reversed_groups)
    with rc.record(path=path):
        ((live, *_),) = call(recorded, 1)
    assert [sample["prompts"] for sample in live[::2]] == [["c"], ["b"], ["a"]]
    rc.shrink(path, tmp_path / "small", rows=4)
    with rc.replay(path=tmp_path / "small"):
        ((again, *_),) = call(generator("ab", batch_size=2), 1)
    assert again == live[2:]


def test_prompts_in_the_place_of_filtered_ones_can_not_be_cut(generator, path, tmp_path):
    """They are not in the request. A call that filtered and replaced nothing can be."""
    recorded = generator("abcde", filtering=True)
    rewards = {prompt: [0.0, 1.0] for prompt in "abcde"}
    recorded.vllm_engines[0].rewards = rewards | {"b": [0.0, 0.0], "e": [1.0, 1.0]}
    with rc.record(path=path):
        live = call(recorded, 2)
    assert [sample["prompts"] for sample in live[0][0][::2]] == [["a"], ["c"]]
    with pytest.raises(rc.CassetteError, match="in the place of a filtered one"):
        rc.shrink(path, tmp_path / "small", rows=2)
    rc.shrink(path, tmp_path / "small", steps=[1])
    with rc.replay(path=tmp_path / "small"):
        assert call(generator("abcde", filtering=True), 1) == live[:1]


def test_filtered_prompts_are_left_out(generator, path, tmp_path):
    """Where there was none to take their place: at the end of the prompts."""
    recorded = generator("abc", batch_size=3, filtering=True)
    recorded.vllm_engines[0].rewards = {"a": [0.0, 0.0], "b": [0.0, 1.0], "c": [0.0, 1.0]}
    with rc.record(path=path):
        ((live, *_),) = call(recorded, 1)
    rc.shrink(path, tmp_path / "small", rows=2)
    with rc.replay(path=tmp_path / "small"):
        ((again, rate, drawn, _),) = call(generator("b", batch_size=1, filtering=True), 1)
    assert (again, rate, drawn) == (live[:2], 4 / 3 * 100, 1)


@pytest.mark.parametrize("step", [1, 2])
def test_experiences_that_wait_can_not_be_cut(generator, path, tmp_path, step):
    """Neither the call that made them nor the one that gave them; steps can be chosen."""
    options = {"vllm_generate_batch_size": 4}
    with rc.record(path=path):
        live = call(generator("abcdefgh", **options), 4)
    with pytest.raises(rc.CassetteError, match="vllm_generate_batch_size") as caught:
        rc.shrink(path, tmp_path / "small", rows=2, steps=[step])
    assert "Choose steps" in str(caught.value)
    rc.shrink(path, tmp_path / "small", steps="1-2")
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        assert call(generator("abcdefgh", **options), 2) == live[:2]


def test_evaluations_are_cut_too(generator, path, tmp_path):
    with rc.record(path=path, phases="val"):
        live = plain(generator(evaluated="xyz").generate_eval_samples())
    assert rc.shrink(path, tmp_path / "small", rows=4).rows == 4
    with rc.replay(path=tmp_path / "small", phases="val"):
        assert plain(generator(evaluated="xy").generate_eval_samples()) == live[:4]


def test_it_is_repeated_for_any_number_of_prompts(generator, path, tmp_path):
    with rc.record(path=path):
        ((live, *_),) = call(generator(), 1)
    rc.shrink(path, tmp_path / "small", rows=2)
    with rc.replay(path=tmp_path / "small", mode="repeat"):
        ((again, *_),) = call(generator("xyz", batch_size=3), 1)
    assert again == live[:2] * 3


def test_experiences_have_no_fields_to_choose_from(generator, path, tmp_path):
    with rc.record(path=path):
        call(generator(), 1)
    with pytest.raises(rc.CassetteError, match="no named fields"):
        rc.shrink(path, tmp_path / "small", fields=["left"])
