"""Groups that are evicted while the trainer samples, and the prompts that take their places."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_trainings
from tests.verl.overrides import COLOCATE_ASYNC, FILTERED, SEPARATE_ASYNC

FAILED = ("trainer.v1.sampler.sync_refill_failed_groups=True", "data.gen_batch_size=1")

pytestmark = pytest.mark.verl


@pytest.mark.parametrize(
    "mode", [(), COLOCATE_ASYNC, SEPARATE_ASYNC], ids=["sync", "colocate", "separate"]
)
def test_filtered_groups_are_replaced_in_the_replay_too(train, tmp_path, mode):
    """The batch, the metrics that tell of evictions, and the prompts that the data set gave."""
    with rc.record(path=tmp_path / "c"):
        live = train(overrides=(*mode, *FILTERED))
    with rc.replay(path=tmp_path / "c", on_unplayed="error"):
        again = train(overrides=(*mode, *FILTERED))
    assert_equal_trainings(live, again)
    assert again.requests == (0, 0)
    states = [run.trainer.train_dataloader.state_dict() for run in (live, again)]
    assert states[0]["_num_yielded"] == states[1]["_num_yielded"]
    assert evicted(live, "filter_groups") > 0


def evicted(run, why):
    """Count the groups that were evicted, as verl logged it."""
    name = f"training/{why}/evicted_samples"
    return sum(line.get(name, 0) for line in run.metrics.values())


@pytest.mark.parametrize(
    ("mode", "fail"),
    [(FAILED, range(1, 6)), (COLOCATE_ASYNC, range(1, 10))],
    ids=["sync", "colocate"],
)
def test_failed_groups_are_replaced_in_the_replay_too(train, tmp_path, mode, fail):
    """A sync trainer replaces those without any trajectory, an asynchronous one all of them.

    Whatever the order in which requests arrive: of four prompts with two requests each, five failures
    leave one without a trajectory; of eight, nine leave too few to be sampled.
    """
    with rc.record(path=tmp_path / "c"):
        live = train(2, mode, fail=fail)
    with rc.replay(path=tmp_path / "c", on_unplayed="error"):
        again = train(2, mode)
    assert_equal_trainings(live, again)
    assert again.requests == (0, 0)
    assert evicted(live, "rollout_failure") > 0


def test_stale_groups_are_replaced_in_the_replay_too(train, tmp_path):
    """Three batches ahead with a threshold of two versions: some get too old to be sampled."""
    overrides = (
        *COLOCATE_ASYNC,
        "trainer.v1.colocate_async.num_warmup_batches=3",
        "trainer.v1.sampler.max_off_policy_threshold=2",
        "trainer.v1.sampler.max_off_policy_strategy=drop",
    )
    with rc.record(path=tmp_path / "c"):
        live = train(5, overrides)
    with rc.replay(path=tmp_path / "c", on_unplayed="error"):
        again = train(5, overrides)
    assert_equal_trainings(live, again)
    assert evicted(live, "off_policy") > 0


def test_repeat_draws_no_refills(train, tmp_path):
    """It fits the recorded groups to what is submitted: nothing of it is evicted."""
    with rc.record(path=tmp_path / "c"):
        train(1, FILTERED)
    with rc.replay(mode="repeat", path=tmp_path / "c"):
        again = train(2, FILTERED)
    assert again.requests == (0, 0)
    assert again.trainer.train_dataloader.state_dict()["_num_yielded"] == 8
    assert [len(batch.keys) for batch in again.actor_batches] == [8, 8]
