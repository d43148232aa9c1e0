"""Fixtures that stand in for a user's project: real modules, written and imported."""

from __future__ import annotations

import importlib
import itertools
import logging
import sys
import textwrap

import pytest

import rollout_cassettes as rc
from rollout_cassettes import patching
from rollout_cassettes.patching import wrapper
from rollout_cassettes.patching.imports import ImportWatcher

_numbers = itertools.count()

ENGINE = """
    import asyncio
    import random

    calls = []

    def generate(prompts, step=None):
        calls.append((list(prompts), step))
        return {"prompts": list(prompts), "scores": [random.random() for _ in prompts]}

    async def agenerate(prompts, step=None, delay=0.0):
        calls.append((list(prompts), step))
        await asyncio.sleep(delay)
        return {"prompts": list(prompts), "scores": [random.random() for _ in prompts]}

    class Engine:
        def generate(self, prompts, step=None):
            return generate(prompts, step)

        async def agenerate(self, prompts, step=None, delay=0.0):
            return await agenerate(prompts, step, delay)

        @classmethod
        def of_class(cls, prompts):
            return cls.__name__, generate(prompts)

        @staticmethod
        def static(prompts):
            return generate(prompts)

    class FastEngine(Engine):
        def generate(self, prompts, step=None):
            return super().generate(prompts, step) | {"fast": True}
"""


def _traces():
    """Return what is open, patched and watched; verl's plugin may be, for as long as pytest runs."""
    finders = [finder for finder in sys.meta_path if isinstance(finder, ImportWatcher)]
    return wrapper._handlers, list(patching._patches), finders


@pytest.fixture(autouse=True)
def nothing_is_left():
    """After each test, no session is open, and nothing is patched or watched."""
    before = _traces()
    yield
    assert _traces() == before


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Write a module that can be imported: `write_module(source, name=None) -> its name`."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    known = set(sys.modules)

    def write(source, name=None):
        name = name or f"project_{next(_numbers)}"
        file = folder.joinpath(*name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        return name

    yield write
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.fixture
def engine(write_module):
    """A freshly imported module with functions and classes that generate."""
    return importlib.import_module(write_module(ENGINE))


@pytest.fixture
def generate(engine):
    """The adapter of `engine.generate`, whose calls say their step and their prompts."""
    return rc.adapters.function(
        f"{engine.__name__}:generate",
        step_of=lambda prompts, step: step,
        request_of=lambda prompts, step: list(prompts),
    )


@pytest.fixture
def counted(engine):
    """The adapter of `engine.generate`, whose calls say nothing."""
    return rc.adapters.function(f"{engine.__name__}:generate")


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


@pytest.fixture
def path(tmp_path):
    """Where the cassette of a test is."""
    return tmp_path / "cassette"


def warnings_of(caplog):
    """List the messages of warnings and errors."""
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
