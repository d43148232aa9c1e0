"""Asking sessions: what they are asked, in which order, and what they never see."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from types import SimpleNamespace

import pytest

from rollout_cassettes import patching
from rollout_cassettes.patching import EntryPoint, wrap, wrapper


class Scripted:
    """A session that notes what happens, and answers a call itself where it is told to."""

    def __init__(self, name, log, answer=None):
        self.name = name
        self.log = log
        self.answer = answer

    def handle(self, call):
        self.log.append(f"{self.name} asked")
        try:
            if self.answer is not None:
                return self.answer
            live = yield
            self.log.append(f"{self.name} got {live}")
            return f"{live}, {self.name}"
        finally:
            self.log.append(f"{self.name} done")

    def pass_over(self, call):
        self.log.append(f"{self.name} passed over")


@pytest.fixture
def log():
    return []


@pytest.fixture
def opened():
    """Open handlers, the first one outermost."""
    with contextlib.ExitStack() as stack:

        def open_handlers(*handlers):
            for handler in handlers:
                wrapper.push(handler)
                stack.callback(wrapper.remove, handler)

        yield open_handlers


def wrapped(function, qualname="generate"):
    return wrap(EntryPoint("test", "module", qualname), function)


def test_without_a_session_the_wrapper_is_the_original():
    function = wrapped(lambda a, *, b: (a, b))
    assert function(1, b=2) == (1, 2)


def test_the_wrapper_looks_like_the_original():
    def generate(prompts: list, *, step: int = 0):
        """Generate."""

    function = wrapped(generate)
    assert function.__doc__ == "Generate."
    assert inspect.signature(function) == inspect.signature(generate)
    assert inspect.iscoroutinefunction(wrapped(asyncio.sleep))


def test_sessions_are_asked_from_the_inside_out_and_told_from_the_outside_in(log, opened):
    opened(Scripted("outer", log), Scripted("inner", log))
    assert wrapped(lambda: "live")() == "live, outer, inner"
    assert log == [
        "inner asked",
        "outer asked",
        "outer got live",
        "outer done",
        "inner got live, outer",
        "inner done",
    ]


def test_the_innermost_answer_counts_and_outer_sessions_take_note(log, opened):
    opened(Scripted("outer", log), Scripted("middle", log, "replayed"), Scripted("inner", log))
    assert wrapped(pytest.fail)() == "replayed, inner"
    assert log == [
        "inner asked",
        "middle asked",
        "middle done",
        "outer passed over",
        "inner got replayed",
        "inner done",
    ]


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration("no"), KeyboardInterrupt("no")])
def test_an_exception_of_the_live_call_comes_through_and_closes_the_sessions(log, opened, error):
    def fail():
        raise error

    opened(Scripted("outer", log), Scripted("inner", log))
    with pytest.raises(type(error)) as caught:
        wrapped(fail)()
    assert caught.value is error
    assert log == ["inner asked", "outer asked", "outer done", "inner done"]


def test_an_exception_of_one_session_closes_the_others(log, opened):
    class Refusing(Scripted):
        def handle(self, call):
            raise ValueError("no")
            yield

    opened(Refusing("outer", log), Scripted("inner", log))
    with pytest.raises(ValueError, match="no"):
        wrapped(pytest.fail)()
    assert log == ["inner asked", "inner done"]


def test_a_session_that_asks_twice_is_refused(log, opened):
    class Greedy(Scripted):
        def handle(self, call):
            yield
            yield

    opened(Greedy("session", log))
    with pytest.raises(RuntimeError, match="twice"):
        wrapped(lambda: "live")()


async def test_async_functions_are_asked_and_told_likewise(log, opened):
    async def generate():
        await asyncio.sleep(0)
        return "live"

    opened(Scripted("outer", log), Scripted("inner", log))
    assert await wrapped(generate)() == "live, outer, inner"


async def test_a_cancelled_async_call_closes_the_sessions(log, opened):
    opened(Scripted("session", log))
    task = asyncio.create_task(wrapped(asyncio.sleep)(60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["session asked", "session done"]


async def test_a_coroutine_from_a_plain_function_is_awaited_before_the_sessions_are_told(
    log, opened
):
    async def later():
        await asyncio.sleep(0)
        return "live"

    def generate():
        return later()

    class Noting(Scripted):
        def handle(self, call):
            log.append((yield))
            return log[-1]

    opened(Noting("session", log))
    coroutine = wrapped(generate)()
    assert log == []
    assert await coroutine == "live"
    assert log == [patching.Awaited("live")]


async def test_a_replayed_coroutine_is_handed_back_as_one(log, opened):
    opened(Scripted("session", log, patching.Awaited("replayed")))
    assert await wrapped(pytest.fail)() == "replayed"


async def test_an_exception_in_a_coroutine_from_a_plain_function_closes_the_sessions(log, opened):
    async def fail():
        raise ValueError("no")

    def generate():
        return fail()

    opened(Scripted("session", log))
    with pytest.raises(ValueError, match="no"):
        await wrapped(generate)()
    assert log == ["session asked", "session done"]


def test_other_awaitables_are_handed_on_as_they_are(log, opened):
    """A Ray ObjectRef can be awaited too; who gets one may pass it to `ray.get`."""
    reference = SimpleNamespace(__await__=lambda: iter(()))
    opened(Scripted("session", log, reference))
    assert wrapped(pytest.fail)() is reference


def test_a_call_inside_a_call_is_part_of_it(log, opened):
    """Whatever the object: a router may hand on to replicas of its own class."""

    class Engine:
        def __init__(self, *replicas):
            self.replicas = replicas

        def generate(self):
            return [replica.generate() for replica in self.replicas]

    Engine.generate = wrapped(Engine.generate, "Engine.generate")
    opened(Scripted("session", log))
    Engine(Engine(), Engine()).generate()
    assert log.count("session asked") == 1


def test_another_function_called_inside_is_a_call_of_its_own(log, opened):
    inner = wrapped(lambda: "inner", "inner")
    opened(Scripted("session", log))
    wrapped(lambda: (inner(),), "outer")()
    assert log.count("session asked") == 2


def test_another_function_called_inside_is_part_of_it_where_the_session_says_so(log, opened):
    class Owner(Scripted):
        def handle(self, call):
            log.append(f"{self.name} asked")
            return (yield True)

    inner = wrapped(lambda: "inner", "inner")
    opened(Owner("owner", log), Scripted("session", log))
    wrapped(lambda: (inner(),), "outer")()
    inner()
    assert log.count("session asked") == 3
    assert log.count("owner asked") == 2


def test_a_session_opened_inside_a_call_is_asked_about_calls_inside_it(log):
    inner, outer = Scripted("inner", log, "replayed"), Scripted("outer", log)

    @wrapped
    def generate(depth):
        if depth == 0:
            return "live"
        wrapper.push(inner)
        try:
            return generate(depth - 1)
        finally:
            wrapper.remove(inner)

    wrapper.push(outer)
    try:
        assert generate(1) == "replayed, outer"
    finally:
        wrapper.remove(outer)
    assert log.count("outer asked") == 1


async def test_calls_of_concurrent_tasks_are_not_inside_each_other(log, opened):
    opened(Scripted("session", log))
    generate = wrapped(asyncio.sleep)
    await asyncio.gather(*(generate(0.001) for _ in range(20)))
    assert log.count("session asked") == 20


async def test_a_task_that_outlives_the_call_that_started_it_is_asked_about(log, opened):
    tasks = []

    async def generate(more=0):
        if more:
            tasks.append(asyncio.create_task(later()))

    async def later():
        await asyncio.sleep(0.001)
        await function()

    function = wrapped(generate)
    opened(Scripted("session", log))
    await function(more=1)
    await asyncio.gather(*tasks)
    assert log.count("session asked") == 2
