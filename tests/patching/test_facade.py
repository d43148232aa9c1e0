"""Façades: functions that look at their caller to know whether to await (verl's `auto_await`)."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect

import pytest

import rollout_cassettes as rc
from rollout_cassettes.patching.facade import around, inner_of

SOURCE = """
    import asyncio, functools, inspect

    calls = []

    def auto_await(function):
        @functools.wraps(function)
        def facade(*args, **kwargs):
            coroutine = function(*args, **kwargs)
            caller = inspect.currentframe().f_back
            if caller.f_code.co_flags & inspect.CO_COROUTINE:
                return coroutine
            return asyncio.run(coroutine)
        return facade

    @auto_await
    async def generate(prompts, *, step=1):
        calls.append(prompts)
        return f"{prompts} at {step}"

    class Engine:
        @auto_await
        async def generate(self, prompts):
            calls.append(prompts)
            return prompts

        @staticmethod
        @auto_await
        async def static(prompts):
            calls.append(prompts)
            return prompts
"""

CALLS = {
    "generate": lambda module: module.generate,
    "Engine.generate": lambda module: module.Engine().generate,
    "Engine.static": lambda module: module.Engine.static,
}


@pytest.fixture
def module(write_module):
    return importlib.import_module(write_module(SOURCE))


@pytest.mark.parametrize("qualname", CALLS)
def test_it_is_recorded_and_replayed_whether_or_not_its_caller_awaits(module, path, qualname):
    adapter = rc.adapters.function(f"{module.__name__}:{qualname}")

    async def awaiting():
        return await CALLS[qualname](module)("awaited")

    def run():
        return CALLS[qualname](module)("called"), asyncio.run(awaiting())

    with rc.record(path=path, adapters=adapter) as session:
        live = run()
    assert session.recorded == [1, 2]
    with rc.replay(path=path, adapters=adapter) as session:
        assert run() == live
    assert session.played == [1, 2]
    assert module.calls == ["called", "awaited"]


def test_the_original_comes_back(module, path):
    original = module.generate
    with rc.record(path=path, adapters=rc.adapters.function(f"{module.__name__}:generate")):
        assert module.generate is not original
        module.generate("a")
    assert module.generate is original
    assert module.generate("b", step=2) == "b at 2"


def test_a_copy_is_the_facade_but_for_what_it_closes_over(module):
    async def other(prompts, *, step=1):
        return "other"

    copy = around(module.generate, other)
    assert copy("a") == "other"
    assert inner_of(copy) is other
    assert copy.__name__ == "generate"
    assert inspect.signature(copy) == inspect.signature(other)
    assert module.generate("a") == "a at 1"


async def coroutine_function(): ...


@pytest.mark.parametrize(
    "function",
    [
        len,
        lambda: None,
        coroutine_function,
        functools.wraps(coroutine_function)(lambda: None),
        functools.wraps(len)(lambda: None),
    ],
)
def test_other_functions_are_no_facades(function):
    assert inner_of(function) is None
