"""The training through Ray actors that other tests build on."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_tensors, assert_equal_trainings, untimed
from tests.verl.overrides import COLOCATE_ASYNC, FILTERED, SEPARATE_ASYNC, SORTED, VALIDATION

pytestmark = [pytest.mark.verl, pytest.mark.ray]


def test_prompts_go_out_to_actors_and_come_back_by_the_queue(train_on_ray):
    """Eight requests a step reach the engine, which has the weights of every step."""
    run = train_on_ray(steps=2)
    assert run.requests == (16, 0)
    assert [len(batch.keys) for batch in run.actor_batches] == [8, 8]
    assert sorted(run.digests) == [0, 1, 2]
    assert len(set(run.digests.values())) == 3
    assert run.queue_left == {}


def test_two_live_runs_with_sorted_rows_are_equal_to_the_bit(train_on_ray):
    """A training leaves nothing in the actors that the next one would see."""
    first, second = train_on_ray(overrides=SORTED), train_on_ray(overrides=SORTED)
    assert first.digests == second.digests
    assert_equal_tensors(first.parameters, second.parameters)
    assert untimed(first.metrics) == untimed(second.metrics)


def test_validation_requests_are_counted_apart(train_on_ray):
    """The engine tells them by their greedy sampling."""
    run = train_on_ray(steps=2, overrides=VALIDATION)
    assert run.requests == (16, 8)


def test_a_failing_request_gives_fewer_trajectories(train_on_ray):
    """The engine raises in its own process; the agent loop's group is marked as failed."""
    (batch,) = train_on_ray(steps=1, fail=(3,)).actor_batches
    assert sum(not tag.get("is_padding") for tag in batch.tags) == 7


def test_a_replay_asks_no_actor(train_on_ray, tmp_path):
    """The engine has the same weights after every step, and was never asked."""
    with rc.record(path=tmp_path / "cassette"):
        live = train_on_ray()
    with rc.replay(path=tmp_path / "cassette"):
        again = train_on_ray()
    assert live.requests == (24, 0)
    assert again.requests == (0, 0)
    assert again.digests == live.digests
    assert again.queue_left == {}


@pytest.mark.parametrize(
    "mode",
    [COLOCATE_ASYNC, SEPARATE_ASYNC, FILTERED, (*SEPARATE_ASYNC, *FILTERED)],
    ids=["colocate", "separate", "filtered", "separate-filtered"],
)
def test_a_replay_in_every_mode_is_equal_to_the_bit(train_on_ray, tmp_path, mode):
    """Warm-up batches, refills and several samples a step, through actors and TransferQueue's own."""
    with rc.record(path=tmp_path / "cassette"):
        live = train_on_ray(overrides=mode)
    with rc.replay(path=tmp_path / "cassette", on_unplayed="error"):
        again = train_on_ray(overrides=mode)
    assert live.requests.training > 0
    assert again.requests == (0, 0)
    assert_equal_trainings(live, again)


def test_validation_is_replayed_from_actors_too(train_on_ray, tmp_path):
    """Both phases, and no request at all."""
    phases = ("train", "val")
    with rc.record(path=tmp_path / "cassette", phases=phases):
        live = train_on_ray(overrides=VALIDATION)
    with rc.replay(path=tmp_path / "cassette", phases=phases):
        again = train_on_ray(overrides=VALIDATION)
    assert live.requests == (24, 12)
    assert again.requests == (0, 0)
    assert_equal_trainings(live, again)


def test_the_local_and_the_ray_training_share_a_process(train, train_on_ray):
    """Each finds its own queue."""
    assert train(steps=1).requests == (8, 0)
    assert train_on_ray(steps=1).requests == (8, 0)
