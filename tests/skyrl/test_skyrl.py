"""Generators, as SkyRL's trainers call them."""

from __future__ import annotations

import asyncio
import copy
import inspect
import random

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import SkyRL


def train(generator, batches):
    """Do as the trainer does: it makes batches anew, and takes the metrics out of what it got."""
    outputs = []
    for each in copy.deepcopy(batches):
        output = asyncio.run(generator.generate(each))
        outputs.append(dict(output))
        output.pop("rollout_metrics")
    return outputs


def test_a_replay_gives_what_the_generator_returned(batch, make_generator, path):
    """Step by step, to the bit, and without a call of it."""
    with rc.record(path=path) as session:
        live = train(make_generator(), [batch(step) for step in (1, 2, 3)])
    assert session.recorded == [1, 2, 3]
    generator = make_generator()
    with rc.replay(path=path) as session:
        again = train(generator, [batch(step) for step in (1, 2, 3)])
    assert again == live
    assert session.played == [1, 2, 3]
    assert generator.calls == []


def test_the_method_looks_as_it_did(make_generator, path):
    """SkyRL's asynchronous trainer looks for a parameter in its signature."""
    with rc.record(path=path):
        assert "disable_tqdm" in inspect.signature(make_generator().generate).parameters


def test_a_run_that_is_resumed_goes_on_in_the_cassette(batch, make_generator, path):
    with rc.record(path=path):
        live = train(make_generator(), [batch(step) for step in (1, 2, 3)])
    with rc.replay(path=path):
        again = train(make_generator(), [batch(step) for step in (2, 3)])
    assert again == live[1:]


def test_random_generators_are_left_where_generating_left_them(batch, make_generator, path):
    random.seed(1)
    with rc.record(path=path):
        train(make_generator(), [batch(1)])
    expected = random.random()
    random.seed(1)
    with rc.replay(path=path):
        train(make_generator(), [batch(1)])
    assert random.random() == expected


def test_evaluation_is_live_unless_it_is_named(batch, make_generator, path):
    batches = [batch(1), batch(1, "xyz", phase="eval"), batch(1, "uvw", phase="eval"), batch(2)]

    with rc.record(path=path / "train"):
        train(make_generator(), batches)
    assert [str(key) for key in rc.open_cassette(path / "train").keys] == ["step 1", "step 2"]

    phases = ("train", "val")
    with rc.record(path=path / "all", phases=phases):
        live = train(make_generator(), batches)
    keys = [str(key) for key in rc.open_cassette(path / "all").keys]
    assert keys == ["step 1", "step 1 (val)", "step 1 (val), interaction 1", "step 2"]
    generator = make_generator()
    with rc.replay(path=path / "all", phases=phases):
        assert train(generator, batches) == live
    assert generator.calls == []


def test_batches_without_metadata_are_counted(batch, make_generator, path):
    """As those of a generator that is called by itself."""
    batches = [batch(0) | {"batch_metadata": None} for _ in range(2)]
    with rc.record(path=path) as session:
        live = train(make_generator(), batches)
    assert session.recorded == [1, 2]
    with rc.replay(path=path):
        assert train(make_generator(), batches) == live


def test_an_evaluation_outside_of_training_is_counted(batch, make_generator, path):
    """Its step is None."""
    with rc.record(path=path, phases="val"):
        train(make_generator(), [batch(None, phase="eval")])
    assert [str(key) for key in rc.open_cassette(path).keys] == ["step 1 (val)"]


def test_another_prompt_is_a_mismatch(batch, make_generator, path):
    """The row and the field are named, and the generator is not called."""
    with rc.record(path=path):
        train(make_generator(), [batch(1)])
    generator = make_generator()
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError, match="row 2") as caught:
        train(generator, [batch(1, "ac")])
    assert (caught.value.row, caught.value.field) == (2, "prompt")
    assert generator.calls == []


def test_a_missing_step_is_a_miss(batch, make_generator, path):
    with rc.record(path=path):
        train(make_generator(), [batch(1)])
    with rc.replay(path=path), pytest.raises(rc.StepNotRecordedError):
        train(make_generator(), [batch(2)])


def test_an_error_of_the_generator_comes_through(base, batch, path):
    """And nothing is recorded of the step."""

    class Failing(base.GeneratorInterface):
        async def generate(self, input_batch):
            raise ConnectionError("no engine")

    with rc.record(path=path) as session, pytest.raises(ConnectionError, match="no engine"):
        train(Failing(), [batch(1)])
    assert session.recorded == []


def test_prompts_that_are_generated_at_once_are_told_apart(batch, make_generator, path):
    """As the fully asynchronous trainer does: a call for each prompt, all of one step."""

    async def at_once(generator, prompts):
        calls = [generator.generate(batch(1, prompt), disable_tqdm=True) for prompt in prompts]
        return dict(zip(prompts, await asyncio.gather(*calls), strict=True))

    with rc.record(path=path):
        live = asyncio.run(at_once(make_generator(), "abcdef"))
    assert len(rc.open_cassette(path).keys) == 6
    generator = make_generator()
    with rc.replay(path=path):
        assert asyncio.run(at_once(generator, "fadbec")) == live
    assert generator.calls == []


def test_an_override_is_recorded_once_with_what_it_does(batch, make_generator, path):
    """The call of the method that it overrides is part of it."""

    class Doubling(make_generator):
        async def generate(self, input_batch):
            output = await super().generate(input_batch)
            return output | {"rewards": [2 * row for row in output["rewards"]]}

    with rc.record(path=path):
        live = train(Doubling(), [batch(1)])
    assert len(rc.open_cassette(path).keys) == 1
    with rc.replay(path=path):
        assert train(Doubling(), [batch(1)]) == live


@pytest.mark.parametrize("mode", ["cache", "repeat"])
def test_trajectories_have_the_ids_of_the_live_run(batch, make_generator, path, mode):
    """Those of a data set that was read in another order, such as after a change of its rows."""
    with rc.record(path=path):
        (live,) = train(make_generator(turns=2), [batch(1, uids=["3", "4"])])
    asked = batch(1, uids=["7", "8"])
    with rc.replay(path=path, mode=mode):
        (again,) = train(make_generator(turns=2), [asked])
    assert again["trajectory_ids"] == [each for each in asked["trajectory_ids"] for _ in range(2)]
    assert again["response_ids"] == live["response_ids"]


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("prompts", ["x", "uvxyz"])
def test_repeat_mode_fits_whole_groups(batch, make_generator, path, prompts, turns):
    """They are gone through again where more are asked for, and left out where fewer are."""
    with rc.record(path=path):
        (live,) = train(make_generator(turns), [batch(1, "ab")])
    asked = batch(9, prompts)
    with rc.replay(path=path, mode="repeat"):
        (again,) = train(make_generator(turns), [asked])
    size = 2 * turns
    groups = [live["response_ids"][at : at + size] for at in (0, size)]
    expected = [row for at in range(len(prompts)) for row in groups[at % 2]]
    assert again["response_ids"] == expected
    assert len(again["rewards"]) == len(again["trajectory_time_splits"]["llm"]) == len(expected)
    assert again["rollout_metrics"] == live["rollout_metrics"]
    if turns > 1:
        ids = [each for each in asked["trajectory_ids"] for _ in range(turns)]
        assert again["trajectory_ids"] == ids
    assert len({id(row) for row in again["loss_masks"]}) == len(expected)


def test_rows_that_belong_to_nobody_can_not_be_fitted(base, batch, path):
    """A generator that returns another number of rows has to say whose they are."""

    class Merging(base.GeneratorInterface):
        async def generate(self, input_batch):
            return {"response_ids": [[1]], "trajectory_ids": None, "rollout_metrics": None}

    with rc.record(path=path):
        live = train(Merging(), [batch(1)])
    with rc.replay(path=path):
        assert train(Merging(), [batch(1)]) == live
    with rc.replay(path=path, mode="repeat"), pytest.raises(rc.CassetteError, match="1 rows for 4"):
        train(Merging(), [batch(1)])


@pytest.mark.parametrize("turns", [1, 2])
def test_what_was_recorded_is_seen_as_trajectories(batch, make_generator, path, turns):
    """Read without SkyRL; the turns of a trajectory are its outputs."""
    with rc.record(path=path):
        (live,) = train(make_generator(turns), [batch(1)])
    rows = rc.open_cassette(path)[1].trajectories
    assert [row.response_ids.tolist() for row in rows] == live["response_ids"]
    assert [row.log_probs.tolist() for row in rows] == live["rollout_logprobs"]
    assert [row.score for row in rows] == [row[-1] for row in live["rewards"]]
    assert [row.place for row in rows] == [
        (group, session, output)
        for group in range(2)
        for session in range(2)
        for output in range(turns)
    ]
    assert rows[0].uid == "a"
    asked = [each for each in batch(1)["prompts"] for _ in range(turns)]
    for row, prompt in zip(rows, asked, strict=True):  # later turns have more in their prompts
        assert row.prompt == (prompt if row.output_index == 0 else None)
        assert row.prompt_ids.tolist() == [1, 2]


def test_the_versions_are_in_the_manifest(batch, make_generator, path):
    with rc.record(path=path):
        train(make_generator(), [batch(1)])
    manifest = rc.open_cassette(path)[1].manifest
    assert (manifest.adapter, manifest.step_kind) == (SkyRL.name, "global step")
    assert "torch" in manifest.versions
