"""Both scopes of the adapter for TRL, through the conformance suite."""

from __future__ import annotations

import functools

import pytest

from rollout_cassettes.testing import CHECKS, Run, check_adapter

#: Two steps of training, and a validation of one batch.
SHORT = {"max_steps": 2, "eval_steps": 2, "gradient_accumulation_steps": 1}


@pytest.mark.parametrize("adapter", ["trl", "trl_scored"])
def test_it_passes(train_trl, adapter):
    """Every check is made, with validation, dropout and a reference model."""
    from tests.trl.training import counted, finished, one_thread

    def make_run(**options):
        trainer = train_trl.make(**SHORT, **options)
        calls = counted(trainer)

        def train():
            with one_thread():
                trainer.train()
            run = finished(trainer, None, calls)
            return {"parameters": run.parameters, "metrics": run.metrics}

        return Run(train, lambda: calls["generate"])

    other = functools.partial(make_run, questions=31)
    outcomes = check_adapter(adapter, make_run, make_other=other)
    assert outcomes == dict.fromkeys(CHECKS, "passed")
