"""Replaying: what comes from the cassette, and what a replay refuses to guess."""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import rollout_cassettes as rc


@pytest.fixture
def tape(engine, path, generate):
    """Record steps with `generate`: `tape(1, 1, 2) -> the live results, in order`."""

    def record(*steps, adapter=generate, **options):
        with rc.record(path=path, adapters=adapter, **options):
            results = [engine.generate([f"{step}"], step) for step in steps]
        engine.calls.clear()
        return results

    return record


@pytest.fixture
def replay(path, generate):
    """Open a replay of `generate`: `replay(**options)`."""
    return lambda *args, **options: rc.replay(
        *args, **{"path": path, "adapters": generate} | options
    )


def warnings_of(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


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


# ---- repeat mode


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


# ---- random generators


def draws():
    return random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002


def seed():
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.mark.parametrize("restore_rng", [True, False])
def test_generators_are_left_where_the_live_call_left_them(path, restore_rng):
    @rc.adapters.function
    def generate():
        return draws()

    seed()
    with rc.record(path=path):
        generate()
    after = draws()
    seed()
    with rc.replay(path=path, restore_rng=restore_rng):
        generate()
    assert (draws() == after) == restore_rng


def test_generators_that_the_live_call_did_not_touch_stay_where_they_are(path):
    @rc.adapters.function
    def generate():
        return torch.rand(())

    with rc.record(path=path):
        generate()
    seed()
    expected = random.random()
    seed()
    with rc.replay(path=path):
        generate()
    assert random.random() == expected


@pytest.mark.parametrize("lent", [(1, 1), (1, 2)])
def test_repeat_restores_generators_only_for_the_very_call(engine, tape, replay, lent):
    """Otherwise every step of a long run would draw the same numbers."""
    tape(1)
    random.seed(0)
    expected = random.random()
    with replay(mode="repeat"):
        left = []
        for step in lent:
            random.seed(0)
            engine.generate(["1"], step)
            left.append(random.random())
    assert left[0] != expected
    assert left[1] == expected


async def test_after_calls_that_overlapped_generators_are_where_they_were(write_module, path):
    module = importlib.import_module(
        write_module("""
            import asyncio, random
            async def generate(delay):
                value = random.random()
                await asyncio.sleep(delay)
                return value, random.random()
        """)
    )
    adapter = rc.adapters.function(f"{module.__name__}:generate")

    async def run():
        random.seed(0)
        results = await asyncio.gather(*(module.generate(delay) for delay in (0.03, 0.01, 0.02)))
        return results, random.random()

    with rc.record(path=path, adapters=adapter):
        live = await run()
    with rc.replay(path=path, adapters=adapter):
        assert await run() == live


# ---- threads and tasks


async def test_hundreds_of_tasks_in_flight_get_their_own_recordings(engine, path):
    adapter = rc.adapters.function(f"{engine.__name__}:agenerate", step_of=lambda *_, **__: 1)
    delays = [random.Random(number).random() / 50 for number in range(200)]

    async def run():
        return await asyncio.gather(
            *(engine.agenerate([f"{n}"], delay=delay) for n, delay in enumerate(delays))
        )

    with rc.record(path=path, adapters=adapter):
        live = await run()
    engine.calls.clear()
    with rc.replay(path=path, adapters=adapter, on_unplayed="error") as session:
        assert await run() == live
    assert engine.calls == []
    assert session.played == [1]


def test_threads_get_the_recordings_of_their_requests(engine, path, generate):
    prompts = [[f"{number}"] for number in range(60)]

    def run(order):
        barrier = threading.Barrier(6)

        def work(each):
            barrier.wait(10)
            return [(prompt[0], engine.generate(prompt, 1)) for prompt in each]

        with ThreadPoolExecutor(6) as pool:
            parts = [order[start::6] for start in range(6)]
            return dict(pair for pairs in pool.map(work, parts) for pair in pairs)

    with rc.record(path=path, adapters=generate) as session:
        live = run(prompts)
    assert len(session.summary().faults) == 0
    engine.calls.clear()
    with rc.replay(path=path, adapters=generate, on_unplayed="error"):
        assert run(prompts[::-1]) == live
    assert engine.calls == []


def test_the_summary_may_be_asked_for_while_threads_record(engine, path, generate):
    with rc.record(path=path, adapters=generate) as session, ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(engine.generate, ["a"], step) for step in range(1, 30)]
        while not all(future.done() for future in futures):
            assert set(session.recorded) <= set(range(1, 30))
            time.sleep(0.001)
    assert session.recorded == list(range(1, 30))
