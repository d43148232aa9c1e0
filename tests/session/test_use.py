"""Recording once and replaying from then on: `use_cassette`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import rollout_cassettes as rc


@pytest.fixture
def use(path, generate):
    """Open the cassette: `use(**options)`."""
    return lambda *args, **options: rc.use_cassette(
        *args, **{"path": path, "adapters": generate} | options
    )


def run(engine, steps):
    return [engine.generate([f"{step}"], step) for step in steps]


# ---- record modes


def test_once_records_where_there_is_nothing_and_replays_from_then_on(engine, use):
    with use() as session:
        live = run(engine, (1, 2))
    assert session.recorded == [1, 2]
    with use() as session:
        assert run(engine, (1, 2)) == live
    assert session.played == [1, 2]
    assert len(engine.calls) == 2


def test_once_records_into_an_empty_directory(engine, use, path):
    path.mkdir()
    with use() as session:
        run(engine, (1,))
    assert session.recorded == [1]


def test_once_does_not_record_more_later(engine, use):
    with use():
        run(engine, (1,))
    with pytest.raises(rc.StepNotRecordedError), use():
        run(engine, (1, 2))
    assert len(engine.calls) == 1


def test_none_never_records(engine, use, path):
    with pytest.raises(rc.CassetteNotFoundError), use(record_mode="none"):
        pass
    assert not path.exists()
    with use():
        live = run(engine, (1,))
    with use(record_mode="none") as session:
        assert run(engine, (1,)) == live
    assert session.played == [1]


def test_new_steps_replays_and_records_what_is_missing(engine, use):
    with use(steps=1):
        live = run(engine, (1,))
    with use(record_mode="new_steps") as session:
        more = run(engine, (1, 2))
    assert more[0] == live[0]
    assert (session.played, session.recorded) == ([1], [2])
    with use(record_mode="none"):
        assert run(engine, (1, 2)) == more


def test_a_replay_may_repeat_what_was_recorded(engine, use):
    with use(mode="repeat"):
        live = run(engine, (1,))
    with use(mode="repeat") as session:
        assert run(engine, (1, 2)) == [live[0], live[0]]
    assert session.played == [1, 2]
    with pytest.raises(ValueError, match="mode is one of"):
        use(mode="loop")


def test_new_steps_records_as_the_options_say(engine, use, path):
    with use(record_mode="new_steps", compression=None, metadata={"a": 1}):
        run(engine, (1,))
    assert (path / "step-000001.safetensors").is_file()
    assert rc.open_cassette(path)[1].manifest.metadata == {"a": 1}
    with (
        pytest.raises(rc.UnstorableValueError),
        use(
            record_mode="new_steps",
            on_unstorable="error",
            adapters=rc.adapters.function(
                f"{engine.__name__}:generate", step_of=lambda *_: 2, request_of=lambda *_: object()
            ),
        ),
    ):
        run(engine, (2,))


def test_all_records_selected_steps_again_and_keeps_the_others(engine, use, path):
    with use():
        live = run(engine, (1, 2))
    with use(record_mode="all", steps=2) as session:
        again = run(engine, (2,))
    assert session.recorded == [2]
    assert [each.response for each in rc.open_cassette(path)] == [live[0], again[0]]


def test_rewrite_leaves_nothing_of_the_old_cassette(engine, use, path):
    with use():
        run(engine, (1, 2))
    with use(record_mode="rewrite") as session:
        live = run(engine, (5,))
    assert session.recorded == [5]
    assert [each.response for each in rc.open_cassette(path)] == live


def test_replaying_options_reach_the_replay(engine, use):
    with use():
        run(engine, (1, 2))
    with pytest.raises(rc.UnplayedError), use(on_unplayed="error"):
        run(engine, (1,))
    with use(on_mismatch="warn"):
        engine.generate(["other"], 1)


# ---- life


def test_it_may_be_opened_again_but_not_twice_at_once(engine, use):
    cassette = use()
    with cassette:
        live = run(engine, (1,))
        with pytest.raises(RuntimeError, match="open already"):
            cassette.__enter__()
    with cassette as session:
        assert run(engine, (1,)) == live
    assert session.played == [1]


def test_it_may_be_opened_again_after_it_could_not_be(engine, use):
    cassette = use(record_mode="none")
    with pytest.raises(rc.CassetteNotFoundError):
        cassette.__enter__()
    with use():
        live = run(engine, (1,))
    with cassette:
        assert run(engine, (1,)) == live


async def test_it_is_an_async_context_manager_too(engine, use):
    async with use() as session:
        run(engine, (1,))
    assert session.recorded == [1]


def test_it_warns_where_it_was_not_used(use):
    with pytest.warns(ResourceWarning, match="neither opened nor used as a decorator"):
        use()


def test_it_shows_what_it_is(engine, use, path):
    cassette = use()
    with cassette:
        run(engine, (1,))
        assert repr(cassette) == (f"<use_cassette {path}, record_mode='once': {cassette._session}>")


# ---- as a decorator


def test_a_decorated_function_records_once_and_replays_from_then_on(engine, use):
    @use(steps=(step for step in (1, 2)))
    def train(*steps):
        """Train."""
        return run(engine, steps)

    assert train.__doc__ == "Train."
    live = train(1, 2)
    assert train(1, 2) == train(1, 2) == live
    assert len(engine.calls) == 2


async def test_a_decorated_async_function_stays_one(engine, use):
    @use()
    async def train(step):
        await asyncio.sleep(0)
        return run(engine, (step,))

    assert inspect.iscoroutinefunction(train)
    assert await train(1) == await train(1)
    assert len(engine.calls) == 1


async def test_a_function_that_returns_a_coroutine_is_covered_until_it_was_awaited(engine, use):
    async def later():
        await asyncio.sleep(0)
        return run(engine, (1,))

    @use()
    def train():
        return later()

    original = engine.generate
    assert await train() == await train()
    assert len(engine.calls) == 1
    assert engine.generate is original


def test_a_method_can_be_decorated(engine, use):
    class Trainer:
        @use()
        def train(self, step):
            return run(engine, (step,))

    assert Trainer().train(1) == Trainer().train(1)


def test_an_exception_of_a_decorated_function_comes_through(engine, use):
    @use()
    def train():
        run(engine, (1,))
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            train()
    assert len(engine.calls) == 1


def test_a_function_that_calls_itself_shares_the_session(engine, use):
    @use()
    def train(step):
        rest = train(step - 1) if step > 1 else []
        return [*rest, *run(engine, (step,))]

    assert train(3) == train(3)
    assert len(engine.calls) == 3


def test_calls_in_several_threads_share_the_session(engine, use):
    barrier = threading.Barrier(4)

    @use()
    def train(step):
        barrier.wait(300)
        return run(engine, (step,))

    with ThreadPoolExecutor(4) as pool:
        live = list(pool.map(train, range(1, 5)))
        assert list(pool.map(train, range(1, 5))) == live
    assert len(engine.calls) == 4


async def test_calls_in_several_tasks_share_the_session(engine, use):
    @use()
    async def train(step):
        await asyncio.sleep(0.001)
        return run(engine, (step,))

    async def train_all():
        return await asyncio.gather(*map(train, range(1, 5)))

    assert await train_all() == await train_all()
    assert len(engine.calls) == 4


def test_one_of_several_calls_that_fails_is_enough_to_keep_the_old_cassette(engine, use, path):
    with use():
        live = run(engine, (1,))

    @use(record_mode="rewrite")
    def train(step):
        if step == 1:
            run(engine, (1,))
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError):
            train(step - 1)
        return run(engine, (step,))

    train(2)
    assert [each.response for each in rc.open_cassette(path)] == live


@pytest.mark.parametrize(
    "function",
    [
        lambda: (yield),
        int,
        3,
        classmethod(print),
    ],
)
def test_what_goes_on_after_it_returned_can_not_be_decorated(use, function):
    cassette = use()
    with pytest.raises(TypeError, match="with-statement inside"):
        cassette(function)
    with cassette:
        pass


def test_options_are_checked_where_the_decorator_is_written(path):
    with pytest.raises(ValueError, match="record_mode is one of"):
        rc.use_cassette(path, record_mode="new_episodes")
    with pytest.raises(ValueError, match="run backwards"):
        rc.use_cassette(path, "3-1")


def test_the_default_path_is_that_of_record_and_replay(monkeypatch, tmp_path, engine, generate):
    monkeypatch.setenv("ROLLOUT_CASSETTES_PATH", str(tmp_path / "from_environment"))
    with rc.use_cassette(adapters=generate):
        run(engine, (1,))
    assert rc.open_cassette(tmp_path / "from_environment").steps == [1]
