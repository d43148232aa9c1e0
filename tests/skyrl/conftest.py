"""Fixtures with SkyRL's interface: the real one where SkyRL is installed, else a stand-in."""

from __future__ import annotations

import asyncio
import random
import sys
import typing
from pathlib import Path

import pytest
import typing_extensions

from tests.published import is_installed, published

MODULE = "skyrl.train.generators.base"


@pytest.fixture(scope="session")
def base():
    """The module of SkyRL's interface."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 12) and is_installed(MODULE):
            # SkyRL is made for Python 3.12: pydantic does not take an older one's TypedDict.
            patch.setattr(typing, "TypedDict", typing_extensions.TypedDict)
        with published(MODULE, Path(__file__).with_name("interface.py")) as module:
            yield module


@pytest.fixture
def path(tmp_path):
    """Where cassettes go."""
    return tmp_path / "cassette"


@pytest.fixture
def batch(base):
    """Make what a trainer asks for: `batch(step, prompts="ab", n=2, phase="train")`."""

    def make(step, prompts="ab", n=2, phase="train", uids=None):
        rows = [
            (prompt, (uids or prompts)[at], nth)
            for at, prompt in enumerate(prompts)
            for nth in range(n)
        ]
        return {
            "prompts": [[{"role": "user", "content": prompt}] for prompt, *_ in rows],
            "env_classes": ["gsm8k" for _ in rows],
            "env_extras": [{"reward_spec": {"ground_truth": prompt}} for prompt, *_ in rows],
            "sampling_params": {"temperature": 1.0},
            "trajectory_ids": [base.TrajectoryID(uid, nth) for _, uid, nth in rows],
            "batch_metadata": base.BatchMetadata(step, phase),
        }

    return make


@pytest.fixture
def make_generator(base):
    """Make generators: `make_generator(turns=1)`; with turns, each is a row of the output."""

    class Generator(base.GeneratorInterface):
        def __init__(self, turns=1):
            self.turns = turns
            self.calls = []

        async def generate(self, input_batch, disable_tqdm=False):
            self.calls.append((input_batch["batch_metadata"], disable_tqdm))
            await asyncio.sleep(random.random() / 1000)
            for extras in input_batch["env_extras"]:  # as SkyRLGymGenerator does
                extras["max_turns"] = self.turns
            ids = [each for each in input_batch["trajectory_ids"] for _ in range(self.turns)]
            lengths = [random.randint(1, 4) for _ in ids]
            return {
                "prompt_token_ids": [[1, 2] for _ in ids],
                "response_ids": [[random.randint(0, 99) for _ in range(k)] for k in lengths],
                "rewards": [[0.0] * (k - 1) + [random.random()] for k in lengths],
                "loss_masks": [[1] * k for k in lengths],
                "stop_reasons": ["stop" for _ in ids],
                "rollout_metrics": {"generate/mean": random.random()},
                "rollout_logprobs": [[-random.random() for _ in range(k)] for k in lengths],
                "trajectory_ids": ids if self.turns > 1 else None,
                "trajectory_time_splits": {"llm": [random.random() for _ in ids]},
                "is_last_step": None,
            }

    return Generator


def plain(output):
    """Return an output with its trajectory ids as pairs."""
    ids = output.get("trajectory_ids")
    pairs = ids and [[each.instance_id, each.repetition_id] for each in ids]
    return {**output, "trajectory_ids": pairs}
