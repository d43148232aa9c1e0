"""The three adapters for verl, through the conformance suite."""

from __future__ import annotations

import asyncio
import functools

import pytest

from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.verl.comparison import renamed, uids, untimed
from tests.verl.overrides import SORTED

pytestmark = pytest.mark.verl

#: A validation before training and one after it.
VALIDATED = ("trainer.val_before_train=True", "trainer.test_freq=2")


@pytest.fixture(scope="module")
def loop():
    """Where workers are made."""
    from tests.verl.event_loop import EventLoopThread

    with EventLoopThread() as thread:
        yield thread


#: Who was first in a group, and how long it took.
_OF_A_RUN = ("session_id", "metrics")


def everything(run):
    """Give what two live trainings have in common."""
    batches = []
    for batch in run.actor_batches:
        names = {uid: f"uid-{number}" for number, uid in enumerate(uids(batch))}
        fields = {n: column for n, column in batch.fields.items() if n not in _OF_A_RUN}
        batches.append({n: [renamed(v, names) for v in column] for n, column in fields.items()})
    return {
        "parameters": run.parameters,
        "optimizer": run.optimizer_state,
        "metrics": untimed(run.metrics),
        "batches": batches,
    }


def test_verl_v1_passes(train):
    """The real `fit()`, with a sampler that makes live runs reproducible."""

    def make_run(*overrides):
        def fit():
            return everything(train(2, (*SORTED, *VALIDATED, *overrides)))

        return Run(fit, lambda: train.llm.training + train.llm.validation)

    outcomes = check_adapter(
        "verl_v1", make_run, make_other=functools.partial(make_run, "data.seed=8")
    )
    assert outcomes == dict.fromkeys(CHECKS, "passed")


@pytest.fixture
def rollouts(assets, dataset_cache, loop):
    """Make `LocalRollouts` of one of verl's managers."""
    from tests.verl.local_manager import LocalRollouts

    return lambda manager_class: LocalRollouts(manager_class, assets, loop)


def test_verl_v0_passes(rollouts):
    """What its manager is asked for by two steps of training, each validated."""
    from verl.experimental.agent_loop import AgentLoopManager

    def make_run(first=1):
        ours = rollouts(AgentLoopManager)

        def train():
            generate, done = ours.manager.generate_sequences, []
            for step in (1, 2):
                batch, validation = (
                    ours.prompts(first + step, n=1),
                    ours.prompts(9, n=1, validate=True),
                )
                for each in (batch, validation):
                    each.meta_info["global_steps"] = step
                done += [generate(batch), generate(validation)]
            return untimed_outputs(done)

        return Run(train, lambda: ours.llm.training + ours.llm.validation)

    outcomes = check_adapter("verl_v0", make_run, make_other=functools.partial(make_run, 5))
    assert outcomes == dict.fromkeys(CHECKS, "passed")


def test_verl_fully_async_passes(rollouts):
    """Prompts that are in flight at once."""
    from verl.experimental.fully_async_policy.fully_async_rollouter import (
        FullyAsyncAgentLoopManager,
    )

    def make_run(first=1):
        ours = rollouts(FullyAsyncAgentLoopManager)

        async def feed():
            prompts = {index: ours.prompts(first + index, count=1, n=1) for index in (1, 2, 3)}
            for index, batch in prompts.items():
                batch.non_tensor_batch["uid"][:] = f"uid_sample_0_{index}"
            generate = ours.manager.generate_sequences_single
            return await asyncio.gather(*map(generate, prompts.values()))

        return Run(lambda: untimed_outputs(asyncio.run(feed())), lambda: ours.llm.training)

    outcomes = check_adapter(
        "verl_fully_async", make_run, make_other=functools.partial(make_run, 5)
    )
    assert {name for name, told in outcomes.items() if told != "passed"} == {"phases"}


def untimed_outputs(outputs):
    """Leave out how long generating took, which two live runs don't have in common."""
    for output in outputs:
        output.meta_info.pop("metrics", None)
        output.meta_info.pop("timing", None)
    return outputs
