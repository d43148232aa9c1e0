"""A replay without an engine: all of a run has to be recorded."""

from __future__ import annotations

import importlib

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import Adapter, EntryPoint, Place, Role

TRAINER = """
    started = []

    def start_engine():
        started.append("engine")
        return "started"

    def generate(step):
        return f"answer {step}"

    def fit(steps):
        start_engine()
        return [generate(step) for step in steps]
"""


class WithEngine(Adapter):
    """Knows from the start what a run will ask for."""

    name = "with_engine"
    step_kind = "step"

    def __init__(self, module, plans=True):
        roles = {"start_engine": Role.ENGINE, "generate": Role.WHOLE, "fit": Role.START}
        self.entry_points = tuple(
            EntryPoint(self.name, module, name, role=role) for name, role in roles.items()
        )
        self.plans = plans

    def place(self, call):
        return Place(call.args[0])

    def start(self, call):
        return [Place(step) for step in call.args[0]] if self.plans else ()

    def idle(self, call):
        return "left out"

    def request(self, call):
        return None

    def capture(self, call, result, submitted):
        return result

    def restore(self, call, recorded, submitted, shift):
        return recorded.response


@pytest.fixture
def trainer(write_module):
    return importlib.import_module(write_module(TRAINER))


@pytest.fixture
def adapter(trainer):
    return WithEngine(trainer.__name__)


@pytest.fixture
def recorded(trainer, adapter, path):
    """Three steps; the engine is started for that."""
    with rc.record(path=path, adapters=adapter):
        live = trainer.fit([1, 2, 3])
    trainer.started.clear()
    return live


def test_the_engine_is_left_out(trainer, adapter, path, recorded):
    with rc.replay(path=path, adapters=adapter, engines="off"):
        assert trainer.fit([1, 2, 3]) == recorded
        assert trainer.start_engine() == "left out"
    assert trainer.started == []


def test_by_default_it_is_started(trainer, adapter, path, recorded):
    with rc.replay(path=path, adapters=adapter):
        trainer.fit([1, 2, 3])
    assert trainer.started == ["engine"]


def test_a_session_without_its_adapter_leaves_it_alone(trainer, counted, path):
    with rc.record(path=path, adapters=counted):
        assert trainer.start_engine() == "started"


@pytest.mark.parametrize("mode", ["cache", "repeat"])
def test_what_a_run_lacks_is_an_error_before_it_starts(trainer, adapter, path, recorded, mode):
    """With the missing steps, and how to record them; in repeat mode nothing is lacking."""
    with rc.replay(path=path, adapters=adapter, mode=mode, engines="off"):
        if mode == "repeat":
            assert len(trainer.fit([1, 2, 3, 4, 6])) == 5
            return
        with pytest.raises(rc.StepNotRecordedError) as caught:
            trainer.fit([1, 2, 3, 4, 6])
    assert "steps 4, 6 are not recorded" in str(caught.value)
    assert f"record('4, 6', path='{path}')" in str(caught.value)
    assert (caught.value.step, caught.value.recorded) == (4, [1, 2, 3])
    assert trainer.started == []


def test_steps_that_are_listed_have_to_be_there_at_the_with_statement(adapter, path, recorded):
    session = rc.replay("2-5", path=path, adapters=adapter, engines="off")
    with pytest.raises(rc.StepNotRecordedError, match="steps 4-5 are not recorded"), session:
        pass


def test_a_call_that_would_go_live_is_an_error(trainer, path, recorded):
    """Of a run that doesn't tell what it will ask for."""
    adapter = WithEngine(trainer.__name__, plans=False)
    with (
        rc.replay([1, 2], path=path, adapters=adapter, engines="off"),
        pytest.raises(rc.StepNotRecordedError, match="step 3 is not covered by the session"),
    ):
        trainer.fit([1, 2, 3])


def test_a_function_without_an_engine_may_go_live(engine, generate, path):
    """What it needs is not known; only a framework's engine is left out."""
    with rc.record(1, path=path, adapters=generate):
        engine.generate(["a"], 1)
    with rc.replay(1, path=path, adapters=generate, engines="off"):
        engine.generate(["a"], 2)
    assert len(engine.calls) == 2


@pytest.mark.parametrize("on_miss", ["generate", "record"])
def test_there_is_nothing_that_a_miss_could_ask(path, on_miss):
    with pytest.raises(ValueError, match="engines='off' leaves nothing"):
        rc.replay(path=path, engines="off", on_miss=on_miss)


def test_an_adapter_that_needs_its_engine_says_so(adapter):
    with pytest.raises(rc.CassetteError, match="with_engine can't leave the engine out"):
        Adapter.idle(adapter, None)
