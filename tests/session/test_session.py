"""What recorders and players have in common: their life, and how they nest."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings

import pytest

import rollout_cassettes as rc
from rollout_cassettes.session import Session

# ---- life


@pytest.fixture(params=["record", "replay"])
def make(request, engine, path, generate):
    """Make a session that can be opened, of either kind."""
    if request.param == "record":
        return lambda: rc.record(path=path, adapters=generate)
    with rc.record(path=path, adapters=generate):
        engine.generate(["a"], 1)
    return lambda: rc.replay(path=path, adapters=generate)


def test_nothing_is_patched_before_the_block_and_after_it(engine, make):
    original = engine.generate
    session = make()
    assert engine.generate is original
    with session as opened:
        assert opened is session
        assert isinstance(session, Session)
        assert engine.generate is not original
    assert engine.generate is original


async def test_a_session_is_an_async_context_manager_too(engine, make):
    original = engine.generate
    async with make() as session:
        await asyncio.sleep(0)
        engine.generate(["a"], 1)
    assert engine.generate is original
    assert session.recorded + session.played == [1]


def test_the_original_comes_back_after_an_exception_that_passes_untouched(engine, make):
    original, error = engine.generate, KeyError("from the loop")
    with pytest.raises(KeyError) as caught, make():
        raise error
    assert caught.value is error
    assert engine.generate is original


def test_a_session_is_opened_once(make):
    session = make()
    with session, pytest.raises(RuntimeError, match="is open: make a new one"):
        session.__enter__()
    with pytest.raises(RuntimeError, match="is closed: make a new one"), session:
        pass


def test_closing_twice_does_nothing_more(engine, make):
    session = make()
    with session:
        engine.generate(["a"], 1)
    session.__exit__(None, None, None)
    assert session.recorded + session.played == [1]


def test_a_session_that_was_never_opened_warns(make):
    with pytest.warns(ResourceWarning, match="was made and never opened"):
        make()


def test_a_session_that_could_not_be_opened_does_not_warn(engine, path, generate):
    with pytest.raises(rc.CassetteNotFoundError), rc.replay(path=path, adapters=generate):
        pass
    missing = rc.adapters.function(f"{engine.__name__}:nothing")
    session = rc.record(path=path, adapters=missing)
    with pytest.raises(rc.EntryPointNotFoundError):
        session.__enter__()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del session
        gc.collect()
    with rc.record(path=path, adapters=generate) as session:
        engine.generate(["a"], 1)
    assert session.recorded == [1], "the lock of the session that was not opened is free again"


def test_it_shows_what_it_is_and_what_it_did(engine, path, generate):
    session = rc.record("1-2", path=path, adapters=generate)
    assert repr(session).startswith(f"<Recorder {path}, steps 1-2, new: 0 steps recorded")
    with session:
        engine.generate(["a"], 1)
        assert ", open: 1 step recorded" in repr(session)
    with rc.replay(path=path, adapters=generate) as session:
        assert repr(session).startswith(f"<Player {path}, steps all, open: 0 steps replayed")


@pytest.mark.parametrize("step", [True, 1.5, "1"])
def test_the_step_is_a_whole_number(make, step):
    with make() as session:
        with pytest.raises(TypeError, match="whole number"):
            session.step = step
        with pytest.raises(ValueError, match="0 or more"):
            session.step = -1
        assert session.step is None
        session.step = 3
        assert session.step == 3


def test_the_log_tells_what_happened_and_nothing_is_printed(engine, path, generate, caplog, capsys):
    with caplog.at_level(logging.INFO, "rollout_cassettes"):
        with rc.record(path=path, adapters=generate):
            engine.generate(["a"], 1)
        with rc.replay(path=path, adapters=generate):
            engine.generate(["a"], 1)
    first, second, third, fourth = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"recorded step 1 in {path}")
    assert second.startswith(f"{path}: 1 step recorded")
    assert third == f"replayed step 1 from {path / 'step-000001.msgpack'}"
    assert fourth.startswith(f"{path}: 1 step replayed")
    assert capsys.readouterr() == ("", "")


# ---- nesting


def run(engine, steps):
    return [engine.generate([f"{step}"], step) for step in steps]


@pytest.fixture
def three_steps(engine, path, generate):
    """The live results of steps 1 to 3, which are recorded at `path`."""
    with rc.record(path=path, adapters=generate):
        live = run(engine, (1, 2, 3))
    engine.calls.clear()
    return live


def test_what_a_replay_gives_can_be_recorded(engine, path, generate, three_steps):
    copy = path.with_name("copy")
    with (
        rc.replay(path=path, adapters=generate) as outer,
        rc.record(path=copy, adapters=generate) as inner,
    ):
        assert run(engine, (1, 2, 3)) == three_steps
    assert engine.calls == []
    assert (outer.played, inner.recorded) == ([1, 2, 3], [1, 2, 3])
    assert [each.response for each in rc.open_cassette(copy)] == three_steps
    assert list(rc.open_cassette(copy)[1].random_state["whole"]) == ["python"]


def test_what_an_inner_replay_answers_is_not_recorded_outside(engine, path, generate, three_steps):
    rest = path.with_name("rest")
    with (
        rc.record(path=rest, adapters=generate) as outer,
        rc.replay("1-2", path=path, adapters=generate) as inner,
    ):
        results = run(engine, (1, 2, 3))
    assert results[:2] == three_steps[:2]
    assert engine.calls == [(["3"], 3)]
    assert (outer.recorded, inner.played) == ([3], [1, 2])


def test_the_innermost_replay_that_covers_the_step_answers(engine, path, generate, three_steps):
    other = path.with_name("other")
    with rc.record(path=other, adapters=generate):
        others = run(engine, (1, 2, 3))
    with (
        rc.replay(path=path, adapters=generate) as outer,
        rc.replay("2", path=other, adapters=generate) as inner,
    ):
        assert run(engine, (1, 2, 3)) == [three_steps[0], others[1], three_steps[2]]
    assert (outer.played, inner.played) == ([1, 3], [2])


def test_counts_go_on_outside_while_an_inner_session_answers(engine, path, counted):
    """Otherwise the outer one would file the third call as its first."""
    with rc.record(path=path, adapters=counted):
        run(engine, (1, 2))
    rest = path.with_name("rest")
    with rc.record(path=rest, adapters=counted) as outer:
        with rc.replay(path=path, adapters=counted):
            run(engine, (1, 2))
        run(engine, (3,))
    assert outer.recorded == [3]


def test_sessions_may_be_closed_out_of_order(engine, path, generate, three_steps):
    original = engine.generate
    outer = rc.replay(path=path, adapters=generate)
    inner = rc.record(path=path.with_name("copy"), adapters=generate)
    outer.__enter__()
    inner.__enter__()
    assert run(engine, (1,)) == three_steps[:1]
    outer.__exit__(None, None, None)
    run(engine, (2,))
    inner.__exit__(None, None, None)
    assert engine.generate is original
    assert engine.calls == [(["2"], 2)]
    assert (outer.played, inner.recorded) == ([1], [1, 2])


def test_sessions_of_different_adapters_do_not_disturb_each_other(
    engine, path, generate, three_steps
):
    """The inner one records a method which calls the function that the outer one replays."""
    static = rc.adapters.function(f"{engine.__name__}:Engine.generate", step_of=lambda *_: 1)
    with (
        rc.replay(path=path, adapters=generate) as outer,
        rc.record(path=path.with_name("other"), adapters=static) as inner,
    ):
        assert engine.Engine().generate(["1"], 1) == three_steps[0]
    assert (outer.played, inner.recorded) == ([1], [1])


# ---- calls


async def test_a_coroutine_from_a_plain_function_is_recorded_and_handed_back(engine, path):
    def agenerate(prompts):
        return engine.agenerate(prompts)

    engine.plain = agenerate
    adapter = rc.adapters.function(f"{engine.__name__}:plain")
    with rc.record(path=path, adapters=adapter):
        live = await engine.plain(["a"])
    engine.calls.clear()
    with rc.replay(path=path, adapters=adapter) as session:
        assert await engine.plain(["a"]) == live
    assert (engine.calls, session.played) == ([], [1])
    assert rc.open_cassette(path)[1].response.value == live
    assert rc.open_cassette(path, numpy=True)[1].response == live


async def test_cancelled_calls_give_their_places_back(engine, path, counted):
    adapter = rc.adapters.function(f"{engine.__name__}:agenerate")
    with rc.record(path=path, adapters=adapter) as session:
        task = asyncio.create_task(engine.agenerate(["a"], delay=60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await engine.agenerate(["b"])
    assert session.recorded == [1]


def test_an_interrupt_while_writing_comes_through_and_leaves_no_half_step(
    engine, path, generate, monkeypatch
):
    from rollout_cassettes.cassette.manifest import Manifest

    to_bytes = Manifest.to_bytes

    def interrupt(self):
        if self.step == 2:
            raise KeyboardInterrupt
        return to_bytes(self)

    monkeypatch.setattr(Manifest, "to_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt), rc.record(path=path, adapters=generate) as session:
        run(engine, (1, 2, 3))
    assert session.recorded == rc.open_cassette(path).steps == [1]
    assert len(list(path.iterdir())) == 2


async def test_a_call_made_while_another_thread_awaits_is_not_inside_it(engine, path):
    """`asyncio.to_thread` hands on the context, but each call ends by itself."""
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", request_of=lambda prompts, step=None: prompts
    )
    with rc.record(path=path, adapters=adapter) as session:
        await asyncio.gather(*(asyncio.to_thread(engine.generate, [f"{n}"]) for n in range(8)))
    assert session.recorded == list(range(1, 9))
