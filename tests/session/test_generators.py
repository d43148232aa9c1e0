"""A replay leaves random generators where the live call left them."""

from __future__ import annotations

import asyncio
import importlib
import random

import numpy as np
import pytest
import torch

import rollout_cassettes as rc


def draws():
    return random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002


def seed():
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.mark.parametrize("restore_rng", [True, False])
def test_generators_are_left_where_the_live_call_left_them(path, restore_rng):
    @rc.adapters.function
    def generate():
        return draws()

    seed()
    with rc.record(path=path):
        generate()
    after = draws()
    seed()
    with rc.replay(path=path, restore_rng=restore_rng):
        generate()
    assert (draws() == after) == restore_rng


def test_generators_that_the_live_call_did_not_touch_stay_where_they_are(path):
    @rc.adapters.function
    def generate():
        return torch.rand(())

    with rc.record(path=path):
        generate()
    seed()
    expected = random.random()
    seed()
    with rc.replay(path=path):
        generate()
    assert random.random() == expected


@pytest.mark.parametrize("lent", [(1, 1), (1, 2)])
def test_repeat_restores_generators_only_for_the_very_call(engine, tape, replay, lent):
    """Otherwise every step of a long run would draw the same numbers."""
    tape(1)
    random.seed(0)
    expected = random.random()
    with replay(mode="repeat"):
        left = []
        for step in lent:
            random.seed(0)
            engine.generate(["1"], step)
            left.append(random.random())
    assert left[0] != expected
    assert left[1] == expected


async def test_after_calls_that_overlapped_generators_are_where_they_were(write_module, path):
    module = importlib.import_module(
        write_module("""
            import asyncio, random
            async def generate(delay):
                value = random.random()
                await asyncio.sleep(delay)
                return value, random.random()
        """)
    )
    adapter = rc.adapters.function(f"{module.__name__}:generate")

    async def run():
        random.seed(0)
        results = await asyncio.gather(*(module.generate(delay) for delay in (0.03, 0.01, 0.02)))
        return results, random.random()

    with rc.record(path=path, adapters=adapter):
        live = await run()
    with rc.replay(path=path, adapters=adapter):
        assert await run() == live
