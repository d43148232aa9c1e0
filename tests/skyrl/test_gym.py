"""SkyRL's own generator, its own environments and its own way to make batches; no engine but ours."""

from __future__ import annotations

import asyncio
import random
from importlib.util import find_spec

import pytest

import rollout_cassettes as rc

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
        requests = 0

        async def generate(self, input_batch, model=None):
            self.requests += 1
            await asyncio.sleep(0)
            ids = [random.randint(1, 99) for _ in range(random.randint(2, 5))]
            return {
                "responses": [tokenizer.decode(ids)],
                "response_ids": [[*ids, tokenizer.eos_token_id]],
                "stop_reasons": ["stop"],
                "response_logprobs": [[-random.random() for _ in range(len(ids) + 1)]],
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


def batches(steps):
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
            for k in range(2)
        ]
        yield prepare_generator_input(prompts, 2, {"logprobs": 1}, "gsm8k", "train", step)[0]


def run(generator, steps=(1, 2)):
    return [asyncio.run(generator.generate(batch, disable_tqdm=True)) for batch in batches(steps)]


@pytest.mark.parametrize("options", [{}, {"step_wise_trajectories": True}], ids=["whole", "turns"])
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
