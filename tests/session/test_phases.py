"""Which phases a session covers: those it names, or else those of each adapter."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc


@pytest.fixture
def phased(engine):
    """An adapter whose first prompt names the phase, and whose own phase is "train"."""
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate",
        step_of=lambda prompts, step: step,
        phase_of=lambda prompts, step: prompts[0],
    )
    adapter.phases = frozenset({"train"})
    return adapter


def run(engine, step=1):
    return [engine.generate([phase], step) for phase in ("train", "val", "test")]


def phases_of(path):
    return [key.phase for key in rc.open_cassette(path).keys]


def test_without_a_word_the_adapters_phases_are_covered(engine, phased, path):
    """Others pass through, and are nobody's loss."""
    with rc.record(path=path, adapters=phased) as session:
        run(engine)
    assert phases_of(path) == ["train"]
    assert session.missing == []


def test_an_adapter_that_knows_no_phases_has_all_of_them(engine, phased, path):
    phased.phases = None
    with rc.record(path=path, adapters=phased):
        run(engine)
    assert phases_of(path) == ["train", "test", "val"]


@pytest.mark.parametrize("phases", ["val", ["val"], ("val", "train"), {"val", "test"}])
def test_named_phases_are_recorded_and_replayed(engine, phased, path, phases):
    """A word, or several."""
    named = {phases} if isinstance(phases, str) else set(phases)
    with rc.record(path=path, adapters=phased, phases=phases):
        run(engine)
    assert set(phases_of(path)) == named
    engine.calls.clear()
    with rc.replay(path=path, adapters=phased, phases=phases, on_unplayed="error") as session:
        run(engine)
    assert session.played == [1]
    assert {prompts[0] for prompts, _ in engine.calls} == {"train", "val", "test"} - named


def test_what_is_recorded_of_other_phases_is_not_unplayed(engine, phased, path):
    """By default a run is not expected to ask for validation; if named, it is."""
    with rc.record(path=path, adapters=phased, phases=("train", "val")):
        run(engine)
    with rc.replay(path=path, adapters=phased, on_unplayed="error"):
        engine.generate(["train"], 1)
    with (
        pytest.raises(rc.UnplayedError),
        rc.replay(path=path, adapters=phased, phases=("train", "val"), on_unplayed="error"),
    ):
        engine.generate(["train"], 1)


def test_a_phase_that_is_recorded_by_an_adapter_without_phases_can_be_unplayed(
    engine, phased, path
):
    phased.phases = None
    with rc.record(path=path, adapters=phased):
        engine.generate(["val"], 1)
    with (
        pytest.raises(rc.UnplayedError),
        rc.replay(path=path, adapters=phased, on_unplayed="error"),
    ):
        pass


def test_another_phase_of_a_step_may_be_added(engine, phased, path):
    """What is there is of another phase, and in nobody's way."""
    with rc.record(path=path, adapters=phased):
        run(engine)
    with rc.record(path=path, adapters=phased, phases="val"):
        run(engine)
    assert phases_of(path) == ["train", "val"]
    with pytest.raises(rc.StepExistsError), rc.record(path=path, adapters=phased, phases="val"):
        run(engine)


def test_a_session_that_no_call_came_to_says_for_which_phases_some_came(
    engine, phased, path, caplog
):
    with rc.record(path=path, adapters=phased, phases="eval"):
        run(engine)
    assert "calls came for step 1, phase test and val" in caplog.text


def test_use_cassette_takes_phases(engine, phased, path):
    for _ in range(2):
        engine.calls.clear()
        with rc.use_cassette(path, adapters=phased, phases=("train", "val")):
            run(engine)
    assert engine.calls == [(["test"], 1)]


@pytest.mark.parametrize(
    ("phases", "error", "message"),
    [
        ("Val", ValueError, "lower-case word"),
        ([], ValueError, "phases is empty"),
        ([1], TypeError, "phases takes words"),
    ],
)
def test_what_is_no_phase_is_refused(path, phases, error, message):
    """At the with-statement."""
    with pytest.raises(error, match=message):
        rc.record(path=path, phases=phases)
    with pytest.raises(error, match=message):
        rc.replay(path=path, phases=phases)
