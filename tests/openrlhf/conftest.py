"""Fixtures with OpenRLHF's generator: the real one where OpenRLHF is installed, else a stand-in.

vLLM, which needs a GPU, is never there: the engines are ours, and so are the few names that
OpenRLHF imports from it.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from tests.published import is_installed, published

MODULE = "openrlhf.trainer.ppo_utils.samples_generator"

VLLM = {"vllm": "SamplingParams", "vllm.inputs": "TokensPrompt", "vllm.utils": "random_uuid"}


@pytest.fixture(scope="session")
def module():
    """The module of OpenRLHF's generator."""
    with pytest.MonkeyPatch.context() as patch:
        if is_installed(MODULE):
            for name, member in VLLM.items():
                made = ModuleType(name)
                setattr(made, member, lambda *args, **kwargs: None)
                patch.setitem(sys.modules, name, made)
        with published(MODULE, Path(__file__).with_name("generator.py")) as found:
            yield found


@pytest.fixture
def local(module, monkeypatch):
    """Let the generator call its engines directly, and not through Ray."""
    if hasattr(module, "ray"):
        ray = SimpleNamespace(
            get=lambda ref: ref, wait=lambda refs, **options: (refs[:1], refs[1:])
        )
        monkeypatch.setattr(module, "ray", ray)


def answers(prompt, label, num_samples, rewards=None):
    """Return what an engine makes of a prompt, at random; rewards too, unless they are given."""
    made = []
    for nth in range(num_samples):
        length = random.randint(1, 4)
        reward = float(random.randint(0, 1)) if rewards is None else rewards[nth]
        made.append(
            {
                "prompt": prompt,
                "label": label,
                "observation_tokens": [1, 2, *(random.randint(3, 99) for _ in range(length))],
                "action_ranges": [(2, 2 + length)],
                "rollout_log_probs": [0.0, 0.0, *(-random.random() for _ in range(length))],
                "reward": reward,
                "scores": reward,
                "truncated": False,
                "extra_logs": {},
            }
        )
    return made


class Engine:
    """An engine in this process, called as if it were a Ray actor."""

    def __init__(self):
        self.prompts = []
        self.rewards = {}
        self.generate_responses = SimpleNamespace(remote=self._generate)
        self.get_num_unfinished_requests = SimpleNamespace(remote=lambda: 0)

    def _generate(self, *, prompt, label, num_samples, **options):
        self.prompts.append(prompt)
        return answers(prompt, label, num_samples, self.rewards.get(prompt))


class Loader:
    """Prompts by ones, as OpenRLHF's data loader gives them; it says how far it is."""

    def __init__(self, prompts):
        self.prompts = prompts
        self.position = 0

    def __iter__(self):
        self.position = 0
        while self.position < len(self.prompts):
            prompt = self.prompts[self.position]
            self.position += 1
            yield ["data"], [prompt], [prompt.upper()], [None]
        self.position = 0


def make(module, engines, prompts="abcdefgh", evaluated="xyz", **options):
    """Make a generator, as OpenRLHF's trainers do."""
    rollout = {"batch_size": 2, "n_samples_per_prompt": 2, "vllm_generate_batch_size": None}
    args = SimpleNamespace(
        rollout=SimpleNamespace(**(rollout | options)),
        vllm=SimpleNamespace(enable_sleep=False),
        algo=SimpleNamespace(
            dynamic_filtering_enable=options.get("filtering", False),
            dynamic_filtering_range=(0.1, 0.9),
            advantage=SimpleNamespace(is_correction_level="token"),
        ),
    )
    return module.SamplesGenerator(
        SimpleNamespace(args=args), Loader(prompts), Loader(evaluated), None, engines
    )


@pytest.fixture
def generator(module, local):
    """Make a generator with an engine of its own: `generator(prompts="abcdefgh", **options)`."""
    return lambda *args, **options: make(module, [Engine()], *args, **options)


def plain(value):
    """Return experiences as dicts that can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return plain(vars(value)) if hasattr(value, "sequences") else value


@pytest.fixture
def path(tmp_path):
    """Where cassettes go."""
    return tmp_path / "cassette"
