"""Cassettes to look at."""

from __future__ import annotations

import shutil

import pytest
import torch

import rollout_cassettes as rc
from tests.cli.program import DEMO


@pytest.fixture
def demo(tmp_path):
    """A copy of the committed cassette of verl's V1 trainer, to be changed."""
    return shutil.copytree(DEMO, tmp_path / "demo")


@pytest.fixture
def record(tmp_path):
    """Record what a function of steps returns: `record(name, function, steps=(1, 2), **options)`."""

    def make(name, function, steps=(1, 2), **options):
        adapter = rc.adapters.function(step_of=lambda step: step, name="tests.cli")

        @adapter
        def generate(step):
            return function(step)

        with rc.record(path=tmp_path / name, **options):
            for step in steps:
                generate(step)
        return tmp_path / name

    return make


@pytest.fixture
def texts():
    """A function that answers in words: strings, log-probs, rewards."""

    def answer(step):
        return {
            "prompts": ["1 + 1 =", "2 + 3 ="],
            "completions": [f"two {step}", "fünf 🎞"],
            "completion_ids": torch.tensor([[7, step, 0], [8, 9, 10]]),
            "completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]),
            "log_probs": torch.tensor([[-0.01, -1.0, 0.0], [-5.0, -0.7, -2.5]]),
            "rewards": torch.tensor([0.5, float(step)]),
        }

    return answer
