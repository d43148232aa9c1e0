"""The adapter for SkyRL, through the conformance suite."""

from __future__ import annotations

import asyncio
import functools

import pytest

from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.skyrl.conftest import plain


@pytest.mark.parametrize("turns", [1, 2])
def test_it_passes(batch, make_generator, turns):
    """With an evaluation after each step, whole and turn by turn; every check was made."""

    def make_run(prompts="ab"):
        generator = make_generator(turns)
        batches = [
            batch(step, asked, phase=phase)
            for step in (1, 2)
            for asked, phase in ((prompts, "train"), ("xyz", "eval"))
        ]

        def train():
            return [plain(asyncio.run(generator.generate(each))) for each in batches]

        return Run(train, lambda: len(generator.calls))

    outcomes = check_adapter("skyrl", make_run, make_other=functools.partial(make_run, "uv"))
    assert outcomes == dict.fromkeys(CHECKS, "passed")
