"""Replaying: what comes from the cassette, and what a replay refuses to guess."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import rollout_cassettes as rc
from tests.session.engines import warnings_of


def remove(path, stem):
    """Take an interaction's files away, as a crash would have."""
    for file in path.glob(f"{stem}.*"):
        if not file.name.removeprefix(stem)[1].isdigit():
            file.unlink()


# ---- hits


def test_the_recording_is_handed_back_and_the_original_not_called(engine, tape, replay):
    live = tape(1, 2, 3)
    with replay() as session:
        assert [engine.generate([f"{step}"], step) for step in (1, 2, 3)] == live
    assert engine.calls == []
    assert session.played == [1, 2, 3]
    assert session.generated == session.missing == session.unplayed == []
    assert str(session).startswith("3 steps replayed, 0 generated live, ")


def test_steps_that_are_not_selected_go_live(engine, tape, replay):
    live = tape(1, 2)
    with replay("2") as session:
        first, second = (engine.generate([f"{step}"], step) for step in (1, 2))
    assert engine.calls == [(["1"], 1)]
    assert first != live[0]
    assert second == live[1]
    assert (session.played, session.generated, session.unplayed) == ([2], [], [])


def test_calls_of_one_step_may_come_in_another_order(engine, path, generate, replay):
    with rc.record(path=path, adapters=generate):
        live = {text: engine.generate([text], 1) for text in "abca"}
        again = engine.generate(["a"], 1)
    with replay():
        assert engine.generate(["c"], 1) == live["c"]
        assert engine.generate(["a"], 1)["prompts"] == ["a"]
        assert engine.generate(["b"], 1) == live["b"]
        assert engine.generate(["a"], 1) == live["a"]
        assert engine.generate(["a"], 1) == again


def test_without_a_request_calls_of_one_step_are_told_apart_by_their_order(
    engine, path, tape, counted
):
    with rc.record(path=path, adapters=counted) as session:
        session.step = 4
        live = [engine.generate([text]) for text in "abc"]
    with rc.replay(path=path, adapters=counted) as session:
        session.step = 4
        assert [engine.generate(["?"]) for _ in "abc"] == live


def test_adapters_that_share_a_step_are_told_apart(engine, path):
    """Whatever their calls' order: here the second run scores first."""
    adapters = [
        rc.adapters.function(f"{engine.__name__}:{name}", step_of=lambda *args: 1)
        for name in ("generate", "Engine.static")
    ]
    with rc.record(path=path, adapters=adapters):
        generated = [engine.generate(["a"])]
        scored = engine.Engine.static(["s"])
        generated.append(engine.generate(["b"]))
    with rc.replay(path=path, adapters=adapters):
        assert engine.Engine.static(["s"]) == scored
        assert [engine.generate(["?"]), engine.generate(["?"])] == generated


@pytest.mark.parametrize("steps", [None, "2"])
def test_a_call_inside_a_recorded_call_is_part_of_it(engine, path, steps):
    """`Engine.static` calls `generate`: a replay of the one does not come to make the other."""
    adapters = [
        rc.adapters.function(f"{engine.__name__}:{name}") for name in ("generate", "Engine.static")
    ]

    def run():
        return [engine.Engine.static(["a"]), engine.Engine.static(["b"]), engine.generate(["c"])]

    with rc.record(steps, path=path, adapters=adapters):
        live = run()
    recorded = {
        (each.step, each.manifest.adapter) for each in rc.open_cassette(path).interactions()
    }
    every = {(1, adapters[1].name), (2, adapters[1].name), (1, adapters[0].name)}
    assert recorded == {each for each in every if steps is None or each[0] == 2}
    with rc.replay(steps, path=path, adapters=adapters, on_unplayed="error"):
        assert run()[1] == live[1]


def test_tensors_come_back_to_the_bit_and_belong_to_the_caller(path):
    @rc.adapters.function
    def generate():
        return {"logits": torch.tensor([float("nan"), -0.0, 1e-45]), "ids": np.arange(3)}

    with rc.record(path=path):
        live = generate()
    for _ in range(2):
        with rc.replay(path=path):
            replayed = generate()
        assert torch.equal(replayed["logits"].view(torch.int32), live["logits"].view(torch.int32))
        assert np.array_equal(replayed["ids"], live["ids"])
        replayed["logits"].zero_()
        replayed["ids"][:] = 9


def test_tensors_go_to_the_device_that_is_asked_for(path):
    @rc.adapters.function
    def generate():
        return torch.ones(2), random.random()

    with rc.record(path=path):
        generate()
    with rc.replay(path=path, device="meta"):
        assert generate()[0].device.type == "meta"


# ---- misses


def miss(engine, replay, prompts, step, **options):
    with pytest.raises(rc.StepNotRecordedError) as caught, replay(**options) as session:
        engine.generate(prompts, step)
    assert session.missing == [step]
    assert engine.calls == []
    return caught.value


def test_a_step_that_was_not_recorded_is_an_error(engine, path, tape, replay):
    tape(1, 2, 3)
    error = miss(engine, replay, ["9"], 9)
    assert (error.path, error.step, error.phase, error.index) == (path, 9, "train", 0)
    assert error.recorded == [1, 2, 3]
    assert str(error) == (
        f"Step 9 is not in the cassette {path}, which holds steps 1-3.\n"
        "To fix it:\n"
        f"  1. Record it: record(9, path='{path}').\n"
        "  2. Generate what is missing, and keep it: replay(..., on_miss='record').\n"
        "  3. Give the nearest recorded step instead: replay(..., mode='repeat').\n"
        "  4. Replay other steps only, and let this one go live: replay(steps=...)."
    )


def test_of_many_steps_the_nearest_are_named(engine, tape, replay):
    tape(1, 2, 3, 10, 11, 12)
    assert "holds steps 1-3, 10-12 (the nearest are 3, 10-11)" in str(miss(engine, replay, [], 7))


@pytest.mark.parametrize(
    ("steps", "held"),
    [
        ((1,), "holds one interaction of that step, and it was played already"),
        ((1, 1), "holds 2 interactions of that step, and all of them were played already"),
    ],
)
def test_a_step_that_was_played_already_is_told_so(engine, tape, replay, steps, held):
    live = tape(*steps)
    with replay() as session:
        assert [engine.generate(["1"], 1) for _ in steps] == live
        with pytest.raises(rc.StepNotRecordedError) as caught:
            engine.generate(["1"], 1)
    assert str(caught.value).startswith("Step 1 was asked for once more: ")
    assert held in str(caught.value)
    assert (caught.value.step, caught.value.index) == (1, len(steps))
    assert session.played == [1]


def test_another_phase_is_told_so(engine, path, tape):
    tape(1)
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", step_of=lambda *_: 1, phase_of=lambda *_: "val"
    )
    with (
        pytest.raises(
            rc.StepNotRecordedError, match=r"Step 1 \(val\) is not .* holds step 1\."
        ) as c,
        rc.replay(path=path, adapters=adapter),
    ):
        engine.generate(["1"], 1)
    assert c.value.phase == "val"


def test_another_adapter_is_told_so(engine, path, tape):
    tape(1)
    adapter = rc.adapters.function(f"{engine.__name__}:Engine.static", step_of=lambda *_: 1)
    with (
        pytest.raises(rc.StepNotRecordedError) as caught,
        rc.replay(path=path, adapters=adapter),
    ):
        engine.Engine.static(["1"])
    assert f"through the adapter '{engine.__name__}:generate', and is asked for through" in str(
        caught.value
    )


def test_a_gap_is_not_filled_with_a_later_recording(engine, path, counted):
    """The first of two calls at once failed: by order alone nobody can tell them apart."""
    with rc.record(path=path, adapters=counted) as session:
        session.step = 3
        live = [engine.generate([text]) for text in "ab"]
    remove(path, "step-000003")
    with rc.replay(path=path, adapters=counted) as session:
        session.step = 3
        with pytest.raises(rc.StepNotRecordedError, match="holds later ones") as caught:
            engine.generate(["b"])
    assert "request_of" in str(caught.value)
    with rc.replay(path=path, adapters=counted, on_miss="generate") as session:
        session.step = 3
        assert engine.generate(["a"]) != live[0]
        assert engine.generate(["b"]) == live[1]
    with rc.replay(path=path, adapters=counted, on_miss="record") as session:
        session.step = 3
        filled = engine.generate(["a"])
    with rc.replay(path=path, adapters=counted) as session:
        session.step = 3
        assert [engine.generate([text]) for text in "ab"] == [filled, live[1]]


def test_by_its_request_a_call_is_found_behind_a_gap(engine, path, generate, replay):
    with rc.record(path=path, adapters=generate):
        live = [engine.generate([text], 3) for text in "ab"]
    remove(path, "step-000003")
    with replay():
        assert engine.generate(["b"], 3) == live[1]


def test_a_miss_may_go_live(engine, path, tape, replay):
    live = tape(1)
    with replay(on_miss="generate") as session:
        assert engine.generate(["1"], 1) == live[0]
        engine.generate(["2"], 2)
    assert engine.calls == [(["2"], 2)]
    assert (session.played, session.generated, session.missing) == ([1], [2], [2])
    assert rc.open_cassette(path).steps == [1]


def test_a_miss_may_be_recorded_and_is_there_next_time(engine, path, tape, replay):
    live = tape(1)
    with replay(on_miss="record") as session:
        results = [engine.generate([f"{step}"], step) for step in (1, 2, 2, 1)]
    assert results[0] == live[0]
    assert (session.played, session.recorded, session.missing) == ([1], [1, 2], [])
    assert session.generated == []
    engine.calls.clear()
    with replay() as session:
        assert [engine.generate([f"{step}"], step) for step in (1, 2, 2, 1)] == results
    assert engine.calls == []


def test_recording_misses_needs_no_cassette_at_first(engine, path, generate, replay):
    with replay(on_miss="record") as session:
        live = engine.generate(["1"], 1)
    assert session.recorded == [1]
    with replay():
        assert engine.generate(["1"], 1) == live


def test_a_failed_live_call_of_a_miss_leaves_its_place_free(engine, path, tape, replay):
    tape(1)
    with replay(on_miss="record"):
        with pytest.raises(TypeError):
            engine.generate(3, 2)
        engine.generate(["2"], 2)
    assert [str(key) for key in rc.open_cassette(path).keys] == ["step 1", "step 2"]


@pytest.mark.parametrize("on_miss", ["error", "generate"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_cassette_that_is_not_there_is_an_error(engine, path, replay, exists, on_miss):
    if exists:
        path.mkdir()
    original = engine.generate
    with pytest.raises(rc.CassetteNotFoundError) as caught, replay(on_miss=on_miss):
        pass
    assert caught.value.path == path
    assert engine.generate is original
    assert path.exists() == exists


# ---- mismatches


def test_a_changed_request_is_an_error_and_takes_nothing(engine, path, tape, replay):
    live = tape(1)
    with replay() as session:
        with pytest.raises(rc.RequestMismatchError) as caught:
            engine.generate(["changed"], 1)
        assert session.played == []
        assert engine.generate(["1"], 1) == live[0]
    assert (caught.value.row, caught.value.recorded, caught.value.live) == (0, "1", "changed")


def test_a_changed_request_may_be_replayed_with_a_warning(engine, tape, replay, caplog):
    live = tape(1)
    with replay(on_mismatch="warn"):
        assert engine.generate(["changed"], 1) == live[0]
    (text,) = warnings_of(caplog)
    assert "row 0, field 'request' was '1', and is now 'changed'" in text


def test_rows_that_are_asked_for_later_are_compared_by_the_adapter(
    engine, tape, replay, generate, monkeypatch
):
    """While it restores, as the session does with requests; in repeat mode they are not compared."""
    live = tape(1)

    def restore(call, recorded, submitted, shift):
        recorded.compare([{"later": "a"}], [{"later": "b"}])
        return recorded.response

    monkeypatch.setattr(generate, "restore", restore)
    told = "row 0, field 'later' was 'a', and is now 'b'"
    with replay(), pytest.raises(rc.RequestMismatchError, match=told):
        engine.generate(["1"], 1)
    for options in ({"on_mismatch": "warn"}, {"mode": "repeat"}):
        with replay(**options):
            assert engine.generate(["1"], 1) == live[0]


def test_a_recording_without_its_request_is_not_compared(engine, path, tape, generate, counted):
    with rc.record(path=path, adapters=counted):
        live = engine.generate(["1"])
    with rc.replay(path=path, adapters=generate):
        assert engine.generate(["other"], 1) == live


def test_recordings_without_their_requests_are_left_to_other_calls(engine, path, generate, counted):
    with rc.record(path=path, adapters=counted) as session:
        session.step = 1
        first = engine.generate(["a"])
    with rc.replay(path=path, adapters=generate, on_miss="record"):
        assert engine.generate(["a"], 1) == first
        second = engine.generate(["b"], 1)
    with rc.replay(path=path, adapters=generate):
        assert engine.generate(["a"], 1) == first
        assert engine.generate(["b"], 1) == second
    with rc.replay(path=path, adapters=generate):
        assert engine.generate(["b"], 1) == second
        assert engine.generate(["whatever"], 1) == first


def test_an_adapter_that_fails_stops_the_replay(engine, path, tape):
    tape(1)
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", step_of=lambda prompts, step: {}[step]
    )
    with (
        pytest.raises(rc.CassetteError, match=f"can't be filed under a step of {path}") as caught,
        rc.replay(path=path, adapters=adapter),
    ):
        engine.generate(["1"], 1)
    assert isinstance(caught.value.__cause__, KeyError)
    assert engine.calls == []


@pytest.mark.parametrize("compression", ["zstd", None])
def test_a_flipped_bit_is_an_error(path, compression):
    @rc.adapters.function
    def generate():
        return torch.arange(1000)

    with rc.record(path=path, compression=compression):
        generate()
    (file,) = path.glob("step-000001.safetensors*")
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    with pytest.raises(rc.CassetteCorruptError) as caught, rc.replay(path=path):
        generate()
    assert caught.value.path == file


# ---- what was never asked for


def test_unplayed_steps_are_listed_and_ignored(engine, tape, replay, caplog):
    tape(1, 2, 3)
    with replay(steps="1-2") as session:
        engine.generate(["1"], 1)
    assert session.unplayed == [2]
    assert "not asked for: step 2" in str(session)
    assert warnings_of(caplog) == []


def test_unplayed_steps_may_be_warned_of(engine, path, tape, replay, caplog):
    tape(1, 2, 3)
    with replay(on_unplayed="warn"):
        engine.generate(["1"], 1)
    (text,) = warnings_of(caplog)
    assert f"The cassette {path} holds recordings of steps 2-3 that were never asked for" in text


def test_unplayed_steps_may_be_an_error(engine, path, tape, replay):
    tape(1, 1, 3)
    with pytest.raises(rc.UnplayedError) as caught, replay(on_unplayed="error"):
        engine.generate(["1"], 1)
    assert (caught.value.path, caught.value.steps) == (path, [1, 3])
    assert "record('1, 3'" in str(caught.value)


def test_unplayed_steps_do_not_mask_an_exception_in_flight(tape, replay):
    tape(1)
    with pytest.raises(ZeroDivisionError) as caught, replay(on_unplayed="error"):
        raise ZeroDivisionError
    assert caught.value.__context__ is None


def test_a_replay_that_was_never_asked_says_why(engine, path, tape, replay, caplog):
    tape(1, 2)
    with replay(steps=2):
        engine.generate(["1"], 1)
    (text,) = warnings_of(caplog)
    assert f"nothing was replayed from {path}: no call for the steps 2 came through" in text
    assert "calls came for step 1" in text
