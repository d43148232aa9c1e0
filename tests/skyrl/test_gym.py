"""SkyRL's own generator, its own environments and its own way to make batches; no engine but ours."""

from __future__ import annotations

import asyncio
import functools
import random
from importlib.util import find_spec

import pytest

import rollout_cassettes as rc
from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.skyrl.conftest import plain

pytestmark = [
    pytest.mark.skipif(find_spec("skyrl") is None, reason="needs SkyRL"),
    pytest.mark.skipif(find_spec("transformers") is None, reason="needs transformers"),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    from transformers import AutoTokenizer

    from rollout_cassettes.demo.assets import make_assets

    return AutoTokenizer.from_pretrained(make_assets(tmp_path_factory.mktemp("assets")).model)


@pytest.fixture
def make(base, tokenizer):
    """Make a generator, with an engine that answers at random: `make(**options) -> (it, engine)`."""
    from skyrl.backends.skyrl_train.inference_servers.base import InferenceEngineInterface
    from skyrl.train.config import GeneratorConfig, SkyRLGymConfig
    from skyrl.train.config.config import SamplingParams
    from skyrl.train.generators import SkyRLGymGenerator

    class Engine(InferenceEngineInterface):
        model_name = "tiny"

        def __init__(self):
            self.requests = 0
            self.seed = random.random()

        async def generate(self, input_batch, model=None):
            self.requests += 1
            await asyncio.sleep(0)
            # SkyRL awaits its trajectories in any order: each has a generator of its own.
            (prompt,), (session,) = input_batch["prompt_token_ids"], input_batch["session_ids"]
            drawn = random.Random(f"{self.seed} {prompt} {session}")
            ids = [drawn.randint(1, 99) for _ in range(drawn.randint(2, 5))]
            return {
                "responses": [tokenizer.decode(ids)],
                "response_ids": [[*ids, tokenizer.eos_token_id]],
                "stop_reasons": ["stop"],
                "response_logprobs": [[-drawn.random() for _ in range(len(ids) + 1)]],
            }

        async def finish_session(self, session_id): ...

    Engine.__abstractmethods__ = frozenset()  # nothing else is asked of it

    def made(**options):
        engine = Engine()
        config = GeneratorConfig(
            max_input_length=512, sampling_params=SamplingParams(logprobs=1), **options
        )
        gym = SkyRLGymConfig(max_env_workers=0)
        return SkyRLGymGenerator(config, gym, engine, tokenizer), engine

    return made


def batches(steps, phase="train", first=0):
    """Make batches as SkyRL's trainer does, with its own function."""
    from skyrl.train.generators.utils import prepare_generator_input

    for step in steps:
        prompts = [
            {
                "prompt": [{"role": "user", "content": f"{step} + {k}?"}],
                "env_class": "gsm8k",
                "env_extras": {"reward_spec": {"ground_truth": str(step + k)}},
                "uid": str(k),
            }
            for k in range(first, first + 2)
        ]
        yield prepare_generator_input(prompts, 2, {"logprobs": 1}, "gsm8k", phase, step)[0]


def run(generator, steps=(1, 2), **options):
    made = batches(steps, **options)
    return [asyncio.run(generator.generate(batch, disable_tqdm=True)) for batch in made]


whole_and_by_turns = pytest.mark.parametrize(
    "options", [{}, {"step_wise_trajectories": True}], ids=["whole", "turns"]
)


@whole_and_by_turns
def test_skyrls_own_generator_is_replayed(make, tmp_path, options):
    """To the bit, with no request to the engine, and no environment that runs."""
    generator, engine = make(**options)
    with rc.record(path=tmp_path / "cassette", on_unstorable="error"):
        live = run(generator)
    assert engine.requests == 8
    again, engine = make(**options)
    with rc.replay(path=tmp_path / "cassette") as session:
        assert run(again) == live
    assert session.played == [1, 2]
    assert engine.requests == 0
    rows = rc.open_cassette(tmp_path / "cassette")[2].trajectories
    assert [row.response_ids.tolist() for row in rows] == live[1]["response_ids"]
    assert [row.uid for row in rows] == ["0", "0", "1", "1"]


@whole_and_by_turns
def test_it_passes_the_conformance_suite(make, options):
    """With evaluations; every check was made."""

    def make_run(first=0):
        generator, engine = make(**options)

        def train():
            outputs = run(generator, first=first) + run(generator, phase="eval")
            return [untimed(plain(output)) for output in outputs]

        return Run(train, lambda: engine.requests)

    outcomes = check_adapter("skyrl", make_run, make_other=functools.partial(make_run, first=5))
    assert outcomes == dict.fromkeys(CHECKS, "passed")


def untimed(value):
    """Leave out how long generating took, which two live runs don't have in common."""
    if not isinstance(value, dict):
        return value
    return {name: untimed(each) for name, each in value.items() if "_time" not in name}
