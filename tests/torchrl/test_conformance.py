"""The adapter for torchrl, through the conformance suite."""

from __future__ import annotations

import functools

import pytest

from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.torchrl.training import one_thread, parameters, train

#: Three batches of a turn of each dialog.
SHORT = {"dialog_turns_per_batch": 4, "total_dialog_turns": 12}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="turns"),
        pytest.param({"turns": 2, "yield_completed_trajectories": True}, id="dialogs"),
    ],
)
def test_it_passes(train_torchrl, options):
    """Every check is made but one: an `LLMCollector` has no validation, so just one phase."""
    updates = not options

    def make_run(**others):
        buffer = train_torchrl.make_buffer()
        collector = train_torchrl.make(**SHORT, **options, **others)

        def collect():
            with one_thread():
                batches, losses = train(collector, buffer, updates=updates)
            return {"batches": batches, "losses": losses, "parameters": parameters(collector)}

        return Run(collect, lambda: collector.policy.model.generations)

    other = functools.partial(make_run, questions=range(16, 32))
    outcomes = check_adapter("torchrl", make_run, make_other=other)
    assert {name for name, told in outcomes.items() if told != "passed"} == {"phases"}
    assert list(outcomes) == list(CHECKS)
