"""verl's asynchronous V1 trainers, recorded and replayed: what is sampled was submitted before."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_trainings, uids
from tests.verl.overrides import COLOCATE_ASYNC, SEPARATE_ASYNC

pytestmark = pytest.mark.verl


@pytest.fixture(
    scope="module", params=[COLOCATE_ASYNC, SEPARATE_ASYNC], ids=["colocate", "separate"]
)
def recording(request, train, tmp_path_factory):
    """An asynchronous training of three steps, its cassette, and its overrides."""
    path = tmp_path_factory.mktemp("cassettes") / "three-steps"
    with rc.record(path=path) as session:
        live = train(overrides=request.param)
    assert session.recorded == [1, 2, 3]
    return live, path, request.param


def test_a_replay_is_equal_to_the_bit(train, recording):
    """Parameters, optimizer state, metrics but timings, and every batch of the actor."""
    live, path, overrides = recording
    with rc.replay(path=path, on_unplayed="error") as session:
        again = train(overrides=overrides)
    assert session.played == [1, 2, 3]
    assert_equal_trainings(live, again)
    assert live.requests.training > 0
    assert again.requests == (0, 0)


def test_warm_up_prompts_are_recorded_and_sampled_later(recording):
    """Step 1 submits two batches, and some of what it does not sample is sampled at step 2."""
    _, path, _ = recording
    cassette = rc.open_cassette(path)
    warm_up, batch = cassette[1].request
    assert [len(warm_up["uid"]), len(batch["uid"])] == [4, 4]
    submitted = {1: {*warm_up["uid"], *batch["uid"]}}
    sampled = {
        step: {key.split("_")[0] for each in cassette.interactions(step) for key in keys(each)}
        for step in cassette.steps
    }
    assert sampled[1] < submitted[1]
    assert sampled[2] & submitted[1]


def keys(interaction):
    return interaction.response["batch"].keys


def test_each_sample_of_a_step_is_an_interaction(recording):
    """separate_async samples `parameter_sync_step` times a step, half a batch each time."""
    _, path, overrides = recording
    samples = 2 if overrides is SEPARATE_ASYNC else 1
    interactions = rc.open_cassette(path).interactions(2)
    assert [each.index for each in interactions] == list(range(samples))
    assert [len(keys(each)) for each in interactions] == [8 // samples] * samples


def test_uids_are_those_of_the_live_run(train, recording):
    """Also of prompts that were submitted in an earlier step than they are sampled in."""
    live, path, overrides = recording
    with rc.replay(path=path):
        again = train(overrides=overrides)
    old = {uid for batch in live.actor_batches for uid in uids(batch)}
    new = {uid for batch in again.actor_batches for uid in uids(batch)}
    assert len(old) == len(new)
    assert not old & new


def test_staleness_is_as_recorded(train, recording):
    """SkipManager overwrites the tags, and verl then logs a staleness of -1."""
    live, path, overrides = recording
    with rc.replay(path=path):
        again = train(overrides=overrides)
    name = "training/off_policy/trajectory_staleness/mean"
    staleness = [[line[name] for line in run.metrics.values()] for run in (live, again)]
    assert staleness[0] == staleness[1]
    assert max(staleness[0]) > 0


def test_what_was_in_flight_is_dispatched_when_a_replay_goes_live(train, recording):
    """Steps 1 and 2 are replayed; then the prompts go out that no recorded sample had."""
    _, path, overrides = recording
    with rc.replay("1-2", path=path) as session:
        again = train(overrides=overrides)
    assert session.played == [1, 2]
    assert again.requests.training == 16  # the four prompts left over, and the four of step 3
    assert len(prompts(again.queue_left)) == 4


def prompts(queue):
    return [key for key in queue["train"] if "_" not in key]


def test_a_replay_that_starts_in_the_middle_leaves_live_prompts_alone(train, recording):
    """Step 1 is live, and its leftovers are there to be sampled at step 3.

    As are the prompts of step 2: the recorded step 2 sampled some of step 1, and left its own.
    """
    _, path, overrides = recording
    with rc.replay(2, path=path) as session:
        again = train(overrides=overrides)
    assert session.played == [2]
    assert again.requests.training == 32  # two batches at step 1, one at step 2, and one at step 3
    assert len(again.actor_batches[-1].keys) == len(again.actor_batches[0].keys)


@pytest.mark.parametrize("steps", [2, [1, 3]])
def test_a_part_that_was_recorded_is_replayed(train, recording, tmp_path, steps):
    """What is sampled at a recorded step may have been submitted at one that was not.

    It gets a new uid all the same.
    """
    _, _, overrides = recording
    with rc.record(steps, path=tmp_path / "c"):
        live = train(overrides=overrides)
    with rc.replay(path=tmp_path / "c", on_miss="generate", on_unplayed="error") as session:
        again = train(overrides=overrides)
    cassette = rc.open_cassette(tmp_path / "c")
    assert session.played == cassette.steps
    samples = len(again.actor_batches) // 3
    for each in cassette.interactions():
        batch = again.actor_batches[(each.step - 1) * samples + each.index]
        assert rows(batch) == rows_of(each)
    old, new = (
        {uid for batch in run.actor_batches for uid in uids(batch)} for run in (live, again)
    )
    assert not old & new


def test_a_step_of_which_a_sample_is_missing_is_an_error(train, tmp_path):
    """Its prompts were withheld: a live sample would wait for them for ever."""
    with rc.record(path=tmp_path / "c"):
        train(2, SEPARATE_ASYNC)
    for file in (tmp_path / "c").glob("step-000002.1.*"):
        file.unlink()
    with (
        rc.replay(path=tmp_path / "c", on_miss="generate"),
        pytest.raises(rc.StepNotRecordedError) as caught,
    ):
        train(2, SEPARATE_ASYNC)
    assert (caught.value.step, caught.value.index) == (2, 1)


def rows(batch):
    return [row.tolist() for row in batch.fields["responses"]]


def rows_of(interaction):
    return [row.tolist() for row in interaction.response["data"]["responses"].unbind()]


def test_repeat_goes_on_beyond_what_was_recorded(train, recording):
    """Six steps of three, each prompt under its own uid, and as stale as it was."""
    live, path, overrides = recording
    with rc.replay(mode="repeat", path=path) as session:
        again = train(6, overrides)
    assert session.played == [1, 2, 3, 4, 5, 6]
    assert again.requests == (0, 0)
    batches = [uids(batch) for batch in again.actor_batches]
    assert len({uid for batch in batches for uid in batch}) == 24
    name = "training/off_policy/trajectory_staleness/mean"
    assert again.metrics[6][name] == live.metrics[3][name]


def test_a_missing_step_is_an_error(train, recording):
    """Before its prompts are handed out."""
    _, path, overrides = recording
    with rc.replay(path=path), pytest.raises(rc.StepNotRecordedError) as caught:
        train(4, overrides)
    assert caught.value.step == 4
