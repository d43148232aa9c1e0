"""The adapter for any function or method: for loops that no other adapter knows."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.reading import Saw, watched
from rollout_cassettes.adapters.registry import claim
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cassette.tree import register_codec
from rollout_cassettes.patching import Awaited, Call, EntryPoint, wrap

F = TypeVar("F", bound=Callable[..., Any])


@overload
def function(target: F, /) -> F: ...


@overload
def function(
    target: str | None = None,
    *,
    step_of: Callable[..., int] | None = None,
    phase_of: Callable[..., str] | None = None,
    request_of: Callable[..., Any] | None = None,
    name: str | None = None,
) -> FunctionAdapter: ...


def function(
    target: str | F | None = None,
    *,
    step_of: Callable[..., int] | None = None,
    phase_of: Callable[..., str] | None = None,
    request_of: Callable[..., Any] | None = None,
    name: str | None = None,
) -> FunctionAdapter | F:
    """Record and replay any function or method, synchronous or asynchronous.

    The callables get the arguments of the call, ``self`` included, by position and name as the
    caller gave them; where that doesn't fit their own parameters, with the function's defaults
    filled in::

        generate = rc.adapters.function(
            "my_project.rollout:Engine.generate",
            step_of=lambda self, prompts, step: step,
            request_of=lambda self, prompts, step: prompts,
        )
        with rc.record(path="cassettes/run", adapters=[generate]): ...

    As a decorator, with options or without, it marks a function of yours for every session that names no
    adapters::

        @rc.adapters.function(step_of=lambda prompts, step: step)
        def generate(prompts, step): ...

    A call made inside another call that a session knows is part of that one.

    Args:
        target: The function, as ``"package.module:Qualified.name"``. It is replaced where it is
            defined: a module that imported it by name before the with-block keeps the original.
        step_of: Gives the step of a call. By default the session's ``step`` where you set it, and
            else the number of calls so far, from 1; a call that raises doesn't count.
        phase_of: Gives the phase of a call, such as ``"train"`` (the default) or ``"val"``.
        request_of: Gives what a call asks for: it is recorded, and a replay compares it; a list
            is compared row by row. Give it where calls of one step are made from several threads,
            or may fail and be made again: a replay then finds each call's recording by what it
            asks for. By default nothing is compared, and calls are told apart by their order.
        name: What the adapter is called in manifests; by default the target. A replay looks for
            what an adapter of the same name recorded.

    Raises:
        ValueError: If the target is not of the form ``module:Qualified.name``.
        TypeError: If one of the callables can't be called.
    """
    if target is None or isinstance(target, str):
        return FunctionAdapter(target, step_of, phase_of, request_of, name)
    return FunctionAdapter(None, step_of, phase_of, request_of, name)(target)


class FunctionAdapter(Adapter):
    """What :func:`function` returns: an adapter, and a decorator."""

    unobserved = ""

    def __init__(
        self,
        target: str | None,
        step_of: Callable[..., int] | None,
        phase_of: Callable[..., str] | None,
        request_of: Callable[..., Any] | None,
        name: str | None,
    ) -> None:
        self._callables = {"step_of": step_of, "phase_of": phase_of, "request_of": request_of}
        for option, given in self._callables.items():
            if given is not None and not callable(given):
                raise TypeError(f"{option} takes a function of the call's arguments, got {given!r}")
        self._name = name
        self.name = name or target or "function"
        self.step_kind = "call" if step_of is None else "step"
        self.entry_points = () if target is None else (_entry_point(self.name, target),)

    def __call__(self, decorated: F) -> F:
        """Mark a function, so that sessions which name no adapters record and replay it.

        Raises:
            TypeError: If it is no function, or the adapter was given a target.
            ValueError: If another function was marked under the same name.
        """
        if self.entry_points:
            raise TypeError(f"as a decorator, function() takes no target; it has {self.name!r}")
        if isinstance(decorated, (staticmethod, classmethod)):
            return type(decorated)(self(decorated.__func__))
        if not inspect.isroutine(decorated):
            raise TypeError(f"function() marks functions and methods, not {decorated!r}")
        target = f"{decorated.__module__}:{decorated.__qualname__}"
        adapter = copy.copy(self)
        adapter.name = self._name or target
        claim(adapter.name, frozenset([target]))
        point = EntryPoint(adapter.name, decorated.__module__, decorated.__qualname__)
        return cast("F", wrap(point, decorated, marked_by=adapter))

    def place(self, call: Call) -> Place:
        """Return where a call belongs, as the user's callables say."""
        phase = TRAIN if self._callables["phase_of"] is None else self._ask("phase_of", call)
        return Place(self._ask("step_of", call), phase)

    def request(self, call: Call) -> Any:
        """Return what the user says that the call asks for."""
        return self._ask("request_of", call)

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> Any:
        """Record what the function returned, as it is."""
        return result

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what the function returned, as it was."""
        return recorded.response

    def watched(self, result: Any, saw: Saw) -> Any:
        """Return a dict or a TensorDict of which it is seen what is read."""
        if isinstance(result, Awaited):
            return Awaited(watched(result.value, saw))
        return watched(result, saw)

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]] | None:
        """Return the rows of a list; anything else is one row."""
        if self._callables["request_of"] is None:
            return None
        rows = request if isinstance(request, list) else [request]
        return [row if _is_fields(row) else {"request": row} for row in rows]

    def _ask(self, option: str, call: Call) -> Any:
        """Ask one of the user's callables; None where it wasn't given."""
        asked = self._callables[option]
        if asked is None:
            return None
        if _fits(asked, call.args, call.kwargs):
            return asked(*call.args, **call.kwargs)
        if _fits(asked, call.bound.args, call.bound.kwargs):
            return asked(*call.bound.args, **call.bound.kwargs)
        raise TypeError(
            f"{option}= of the adapter {self.name!r} takes {inspect.signature(asked)}, which does "
            f"not fit a call of {call.point} with {inspect.signature(call.original)}"
        )


def _entry_point(adapter: str, target: str) -> EntryPoint:
    module, colon, qualname = target.partition(":")
    parts = [*module.split("."), *qualname.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ValueError(f"a target is written 'package.module:Qualified.name', got {target!r}")
    return EntryPoint(adapter, module, qualname)


def _fits(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature: calling them will tell
        return True
    return True


def _is_fields(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


register_codec(Awaited, lambda awaited: awaited.value, Awaited, name="rollout_cassettes.awaited")
