"""Façades: the wrapper goes around the coroutine function that they close over."""

from __future__ import annotations

import asyncio
import functools
import inspect

from rollout_cassettes.patching.facade import around, inner_of


def looking(function):
    """Run a coroutine function for callers that don't await, as verl's `auto_await` does."""

    @functools.wraps(function)
    def facade(*args, **kwargs):
        coroutine = function(*args, **kwargs)
        caller = inspect.currentframe().f_back
        awaits = bool(caller.f_code.co_flags & inspect.CO_COROUTINE)
        return coroutine if awaits else asyncio.run(coroutine)

    return facade


@looking
async def generate(prompts, *, n=1):
    """Generate."""
    return prompts * n


def test_a_facade_is_known_by_what_it_closes_over():
    """And nothing else is taken for one."""
    assert inner_of(generate) is generate.__wrapped__
    assert inner_of(generate.__wrapped__) is None
    assert inner_of(len) is None
    assert inner_of(lambda: None) is None


def test_a_function_that_only_names_what_it_wraps_is_no_facade():
    """It has the coroutine function as an attribute, and calls something else."""

    @functools.wraps(generate.__wrapped__)
    def other():
        return 1

    assert inner_of(other) is None


def test_the_copy_closes_over_another_function():
    """The façade still sees who calls it; the original is left as it is."""

    async def another(prompts, *, n=1):
        return ["another", *prompts * n]

    copy = around(generate, another)
    assert copy(["a"], n=2) == ["another", "a", "a"]
    assert generate(["a"], n=2) == ["a", "a"]

    async def awaiting():
        return await copy(["b"])

    assert asyncio.run(awaiting()) == ["another", "b"]


def test_the_copy_looks_like_the_original():
    """Its name, its text, its parameters' defaults."""
    copy = around(generate, generate.__wrapped__)
    assert (copy.__name__, copy.__doc__) == ("generate", "Generate.")
    assert copy.__kwdefaults__ == generate.__kwdefaults__
    assert copy.__wrapped__ is generate.__wrapped__
