"""The adapter for functions, through the conformance suite."""

from __future__ import annotations

import asyncio
import functools

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.testing import CHECKS, Run, check_adapter


class Engine:
    def __init__(self):
        self.requests = 0

    def generate(self, prompts, step, phase="train"):
        self.requests += len(prompts)
        return {
            "response_ids": torch.randint(9, (len(prompts), 4)),
            "text": [p.upper() for p in prompts],
        }

    async def agenerate(self, prompts, step, phase="train"):
        await asyncio.sleep(0)
        return self.generate(prompts, step, phase)


def fit(rollout, prompts):
    weights, log = torch.zeros(4), []
    for step in range(1, 4):
        batch = rollout(prompts, step)
        weights += (batch["response_ids"].float() * torch.rand(len(prompts), 1)).mean(0)
        log.append((batch["text"], rollout(["v"], step, "val")["response_ids"]))
    return weights, log


def make_run(method, prompts=("a", "b")):
    engine = Engine()

    def rollout(*args):
        answer = getattr(engine, method)(*args)
        return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer

    return Run(train=lambda: fit(rollout, list(prompts)), rollouts=lambda: engine.requests)


@pytest.mark.parametrize("method", ["generate", "agenerate"])
def test_a_method_with_all_that_can_be_said_of_it(method):
    """Step, phase and request: every check was made."""
    adapter = rc.adapters.function(
        f"{__name__}:Engine.{method}",
        step_of=lambda self, prompts, step, phase="train": step,
        phase_of=lambda self, prompts, step, phase="train": phase,
        request_of=lambda self, prompts, step, phase="train": prompts,
    )
    outcomes = check_adapter(
        adapter,
        functools.partial(make_run, method),
        make_other=functools.partial(make_run, method, prompts=("a", "c")),
    )
    assert outcomes == dict.fromkeys(CHECKS, "passed")


def test_a_method_of_which_nothing_is_said():
    """Calls are counted; there are no phases, and no requests to compare."""
    adapter = rc.adapters.function(f"{__name__}:Engine.generate")
    outcomes = check_adapter(adapter, functools.partial(make_run, "generate"))
    assert {name for name, told in outcomes.items() if told != "passed"} == {"phases", "mismatch"}
