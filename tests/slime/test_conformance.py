"""The adapter for slime, through the conformance suite."""

from __future__ import annotations

import functools

import pytest

from rollout_cassettes.adapters import slime
from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.slime import rollouts
from tests.slime.rollouts import Prompts, arguments, plain

pytestmark = pytest.mark.usefixtures("framework")


def make_run(function, start=0):
    """Make a run of two steps, each evaluated; what the source is like then is part of it."""
    args = arguments(cassettes={"rollout_function": f"{rollouts.__name__}.{function}"})
    source = Prompts(start)
    rollouts.calls.clear()

    def train():
        generate, log = entered(function), []
        for step in (0, 1):
            log.append(plain(generate(args, step, source)))
            log.append([source.offset, plain(source.buffer)])
            log.append(plain(generate(args, step, source, evaluation=True)))
        return log

    return Run(train, lambda: len(rollouts.calls))


def entered(function):
    """Return what slime is told to call: of a run without a session, the function itself."""
    in_a_block = hasattr(slime.Rollout.generate, "__wrapped__")
    return slime.generate_rollout if in_a_block else getattr(rollouts, function)


@pytest.mark.parametrize("function", ["generate_rollout", "legacy"])
def test_it_passes(function):
    """With filtered and unfinished samples, and with a list of groups; every check was made."""
    outcomes = check_adapter(
        "slime",
        functools.partial(make_run, function),
        make_other=functools.partial(make_run, function, start=50),
    )
    assert outcomes == dict.fromkeys(CHECKS, "passed")
