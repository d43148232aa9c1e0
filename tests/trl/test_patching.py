"""Trainers that others have changed, and trainers that are refused."""

from __future__ import annotations

import functools
import inspect
import queue
import re

import pytest
import trl

import rollout_cassettes as rc
from tests.session.engines import warnings_of

MODULE = inspect.getmodule(trl.GRPOTrainer)


@pytest.fixture
def cassette(tmp_path):
    return tmp_path / "cassette"


@pytest.fixture
def both(train_trl, cassette):
    """Record two steps with one trainer and replay them with it: `both(trainer) -> runs`."""

    def run(trainer, adapter=None):
        options = {"path": cassette, "adapters": adapter}
        config = {"max_steps": 2, "eval_strategy": "no"}
        live = train_trl(rc.record(**options), trainer, **config)
        return live, train_trl(rc.replay(**options), trainer, **config)

    return run


def outputs(cassette):
    return [each.response["output"] for each in rc.open_cassette(cassette)]


def shouted(output):
    """Return what `_generate` returned, with the completions in capitals."""
    prompt_ids, completion_ids, tool_mask, completions, *others = output
    loud = [[turn | {"content": turn["content"].upper()} for turn in each] for each in completions]
    return prompt_ids, completion_ids, tool_mask, loud, *others


def are_loud(cassette):
    texts = [each[0]["content"] for output in outputs(cassette) for each in output[3]]
    return len(texts) == 16 and texts == [text.upper() for text in texts]


# ---- subclasses


class Loud(trl.GRPOTrainer):
    def _generate(self, *args, **kwargs):
        self.shouts = getattr(self, "shouts", 0) + 1
        return shouted(super()._generate(*args, **kwargs))


class Doubling(trl.GRPOTrainer):
    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        return output | {"advantages": 2 * output["advantages"]}


def test_a_method_of_a_subclass_is_recorded_once_with_what_it_does(both, cassette):
    """The call of the method that it overrides is part of it."""
    live, again = both(Loud)
    assert again.is_equal(live)
    assert again.generations == 0
    assert live.trainer.shouts == 2
    assert not hasattr(again.trainer, "shouts")
    assert len(rc.open_cassette(cassette).keys) == 2
    assert are_loud(cassette)


def test_a_subclass_that_is_defined_later_is_recorded(train_trl, cassette):
    """While the block is open."""
    with rc.record(path=cassette):

        class Later(trl.GRPOTrainer):
            def _generate(self, *args, **kwargs):
                return shouted(super()._generate(*args, **kwargs))

        train_trl(trainer=Later, max_steps=2, eval_strategy="no")
    assert are_loud(cassette)


@pytest.mark.parametrize("scope", ["generated", "scored"])
def test_a_subclass_that_scores_otherwise_is_replayed(both, scope):
    """For real where scores are not recorded, and else as it was."""
    live, again = both(Doubling, rc.adapters.TrlTrainer(scope))
    assert again.is_equal(live)
    assert again.generations == 0


# ---- wrappers, as unsloth puts them


def wrapped(method, seen):
    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        seen.append(self)
        return shouted(method(self, *args, **kwargs))

    return wrapper


def test_a_wrapper_that_was_there_before_is_recorded(both, cassette, monkeypatch):
    """What it returned is what the trainer got; a replay does not call it."""
    seen = []
    monkeypatch.setattr(trl.GRPOTrainer, "_generate", wrapped(trl.GRPOTrainer._generate, seen))
    live, again = both("GRPO")
    assert again.is_equal(live)
    assert again.generations == 0
    assert len(seen) == 2
    assert are_loud(cassette)


def test_a_wrapper_that_comes_later_goes_around(train_trl, cassette, monkeypatch, caplog):
    """It is called in both runs, and stays when the block ends, which a warning says."""
    config = {"max_steps": 2, "eval_strategy": "no"}
    seen, runs = [], []
    original = trl.GRPOTrainer._generate
    for session in (rc.record(path=cassette), rc.replay(path=cassette)):
        with session, monkeypatch.context() as patched:
            patched.setattr(trl.GRPOTrainer, "_generate", wrapped(trl.GRPOTrainer._generate, seen))
            runs.append(train_trl(**config))
    live, again = runs
    assert again.is_equal(live)
    assert again.generations == 0
    assert len(seen) == 4
    assert not are_loud(cassette)
    assert trl.GRPOTrainer._generate is original
    with rc.record(path=cassette / "other"):
        monkeypatch.setattr(trl.GRPOTrainer, "_generate", wrapped(original, seen))
    assert "patched by another library" in warnings_of(caplog)[0]


@pytest.fixture
def unslothed(monkeypatch):
    """Put a class into TRL's module that was compiled from a copy of the source, as unsloth does."""

    def replace():
        source = inspect.getsource(trl.GRPOTrainer).replace("class GRPOTrainer(", "class _Copied(")
        assert source.count("super().__init__(\n") == 1
        namespace = dict(vars(MODULE))
        exec(compile(source, "<compiled>", "exec"), namespace)
        compiled = type("UnslothGRPOTrainer", (namespace["_Copied"],), {})
        monkeypatch.setattr(MODULE, "GRPOTrainer", compiled)
        return compiled

    return replace


@pytest.mark.parametrize("scope", ["generated", "scored"])
def test_a_class_that_took_the_trainers_place_is_recorded(both, unslothed, scope):
    """What counts is what TRL's module has when the block opens."""
    compiled = unslothed()
    assert not issubclass(compiled, trl.GRPOTrainer)
    live, again = both(compiled, rc.adapters.TrlTrainer(scope))
    assert again.is_equal(live)
    assert again.generations == 0
    assert "_generate" not in vars(compiled)


# ---- what is refused


class Worker:
    """A rollout worker that is never started."""

    def __init__(self):
        self.rollout_buffer, self.metrics_queue = queue.Queue(), queue.Queue()

    def check_health(self, stale_after_s): ...


def test_a_trainer_with_rollouts_in_another_process_is_refused(train_trl, cassette, monkeypatch):
    """Before anything is trained. Only the GPU is made up: the trainer asks for its speed."""
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

    module = inspect.getmodule(AsyncGRPOTrainer)
    monkeypatch.setattr(module, "get_peak_flops_per_device", lambda *of: None)
    like = train_trl.make()
    trainer = AsyncGRPOTrainer(
        str(train_trl.assets.model),
        like.reward_funcs,
        args=AsyncGRPOConfig(
            str(train_trl.directory), max_steps=1, use_cpu=True, bf16=False, report_to=[]
        ),
        train_dataset=like.train_dataset,
        processing_class=like.processing_class,
        rollout_worker=Worker(),
        weight_transfer=Worker(),
    )
    with pytest.raises(rc.CassetteError, match="process that it spawns") as caught:  # noqa: SIM117
        with rc.record(path=cassette):
            trainer.train()
    assert "rollout_worker=" in str(caught.value)
    assert rc.open_cassette(cassette).keys == []


class Counter:
    """An environment that scores what was done in it."""

    def reset(self, **row):
        self.count = 0

    def increment(self):
        """Count one up."""
        self.count += 1

    def get_reward(self):
        return float(self.count)


def test_environments_are_recorded_with_their_rewards_only(train_trl, cassette):
    """A replay calls no tools: rewards that look at environments would be wrong."""
    made = train_trl.make()
    made.environment_factories = {None: Counter}
    with pytest.raises(rc.CassetteError, match="environments") as caught:  # noqa: SIM117
        with rc.record(path=cassette):
            made.train()
    assert "scope='scored'" in str(caught.value)


@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_generating_that_changes_the_model_is_refused(train_trl, cassette, method):
    """Before it has: also where the trainer is only to evaluate."""
    made = train_trl.make()
    made.use_transformers_continuous_batching = True
    with pytest.raises(rc.CassetteError, match="changes the model"):  # noqa: SIM117
        with rc.record(path=cassette, phases="val"):
            getattr(made, method)(made.eval_dataset)


def test_a_release_without_the_method_is_named(cassette, monkeypatch):
    """As TRL before 0.24 is."""
    monkeypatch.delattr(trl.GRPOTrainer, "_generate")
    missing = re.escape("has no function trl.trainer.grpo_trainer:GRPOTrainer._generate, ")
    with pytest.raises(rc.EntryPointNotFoundError, match=missing) as caught:  # noqa: SIM117
        with rc.record(path=cassette):
            pass
    assert str(caught.value).startswith(f"trl {trl.__version__} ")
