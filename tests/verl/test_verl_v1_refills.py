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
    metrics = [
        step.get("training/filter_groups/evicted_samples", 0) for step in live.metrics.values()
    ]
    assert sum(metrics) > 0
