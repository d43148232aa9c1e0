"""Repeat mode: the nearest step, for as long as it is asked."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc


@pytest.mark.parametrize(
    ("asked", "given"), [(1, 2), (2, 2), (3, 2), (4, 2), (5, 5), (6, 5), (99, 5)]
)
def test_repeat_gives_the_nearest_earlier_step_or_else_the_nearest_later(
    engine, tape, replay, asked, given
):
    live = dict(zip((2, 5), tape(2, 5), strict=True))
    with replay(mode="repeat") as session:
        assert engine.generate(["whatever"], asked) == live[given]
    assert session.played == [asked]
    assert session.unplayed == [7 - given]


def test_repeat_goes_through_the_calls_of_a_step_in_turn(engine, tape, replay):
    live = tape(2, 2, 2)
    with replay(mode="repeat"):
        for step in (2, 3):
            assert [engine.generate(["?"], step) for _ in range(4)] == [*live, live[0]]


def test_repeat_goes_on_with_what_it_had_to_generate(engine, generate, path):
    """The first step is generated and kept; the others repeat it, in this session already."""
    with rc.replay(path=path, adapters=generate, mode="repeat", on_miss="record") as session:
        answers = [engine.generate([f"prompt {step}"], step) for step in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(engine.calls) == 1
    assert (session.recorded, session.played) == ([1], [2, 3])


def test_repeat_looks_for_what_the_adapter_recorded_itself(engine, path, tape):
    tape(1)
    other = rc.adapters.function(
        f"{engine.__name__}:Engine.static", step_of=lambda prompts: int(prompts[0])
    )
    with rc.record("3", path=path, adapters=other):
        live = engine.Engine.static(["3"])
    with rc.replay(path=path, adapters=other, mode="repeat"):
        assert engine.Engine.static(["1"]) == live


@pytest.mark.parametrize("on_miss", ["error", "generate", "record"])
def test_repeat_misses_where_a_phase_was_never_recorded(engine, path, tape, on_miss):
    tape(1)
    val = rc.adapters.function(
        f"{engine.__name__}:generate", step_of=lambda *_: 1, phase_of=lambda *_: "val"
    )
    with rc.replay(path=path, adapters=val, mode="repeat", on_miss=on_miss) as session:
        if on_miss == "error":
            with pytest.raises(rc.StepNotRecordedError):
                engine.generate(["1"], 1)
        else:
            engine.generate(["1"], 1)
    assert session.recorded == ([1] if on_miss == "record" else [])
