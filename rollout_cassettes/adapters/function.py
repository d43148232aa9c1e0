"""The adapter for any function or method: for loops that no other adapter knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.registry import register
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.patching import Call, EntryPoint, wrap

F = TypeVar("F", bound=Callable[..., Any])


def function(
    target: str | None = None,
    *,
    step_of: Callable[..., int] | None = None,
    phase_of: Callable[..., str] | None = None,
    request_of: Callable[..., Any] | None = None,
    name: str | None = None,
) -> FunctionAdapter:
    """Record and replay any function or method, synchronous or asynchronous.

    The callables get the arguments of the call, ``self`` included, by position and name as the
    caller gave them::

        generate = rc.adapters.function(
            "my_project.rollout:Engine.generate",
            step_of=lambda self, prompts, step: step,
            request_of=lambda self, prompts, step: prompts,
        )
        with rc.record(path="cassettes/run", adapters=[generate]): ...

    As a decorator, with no target, it marks a function of yours for every session that names no
    adapters::

        @rc.adapters.function(step_of=lambda prompts, step: step)
        def generate(prompts, step): ...

    Args:
        target: The function, as ``"package.module:Qualified.name"``. It is replaced where it is
            defined: a module that imported it by name before keeps the original.
        step_of: Gives the step of a call. By default the session's ``step`` where you set it, and
            else the number of calls so far, from 1.
        phase_of: Gives the phase of a call, such as ``"train"`` (the default) or ``"val"``.
        request_of: Gives what a call asks for: it is recorded, and a replay compares it; a list
            is compared row by row. By default nothing is compared.
        name: What the adapter is called in manifests; by default the target.

    Raises:
        ValueError: If the target is not of the form ``module:Qualified.name``.
    """
    return FunctionAdapter(target, step_of, phase_of, request_of, name)


class FunctionAdapter(Adapter):
    """What :func:`function` returns: an adapter, and a decorator."""

    def __init__(
        self,
        target: str | None,
        step_of: Callable[..., int] | None,
        phase_of: Callable[..., str] | None,
        request_of: Callable[..., Any] | None,
        name: str | None,
    ) -> None:
        self._step_of = step_of
        self._phase_of = phase_of
        self._request_of = request_of
        self.step_kind = "call" if step_of is None else "step"
        self.name = name or target or "function"
        self.entry_points = () if target is None else (_entry_point(self.name, target),)

    def __call__(self, decorated: F) -> F:
        """Mark a function, so that sessions which name no adapters record and replay it."""
        target = f"{decorated.__module__}:{decorated.__qualname__}"
        named = self.name if self.name != "function" else target
        adapter = FunctionAdapter(None, self._step_of, self._phase_of, self._request_of, named)
        point = EntryPoint(named, decorated.__module__, decorated.__qualname__)
        register(adapter, point)
        return wrap(point, decorated)  # type: ignore[return-value]

    def place(self, call: Call) -> Place:
        """Return where a call belongs, as the user's callables say."""
        step = None if self._step_of is None else int(self._step_of(*call.args, **call.kwargs))
        phase = TRAIN if self._phase_of is None else self._phase_of(*call.args, **call.kwargs)
        return Place(step, phase)

    def request(self, call: Call) -> Any:
        """Return what the user says that the call asks for."""
        if self._request_of is None:
            return None
        return self._request_of(*call.args, **call.kwargs)

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> Any:
        """Record what the function returned, as it is."""
        return result

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what the function returned, as it was."""
        return recorded.response

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]] | None:
        """Return the rows of a list; anything else is one row."""
        if self._request_of is None:
            return None
        rows = request if isinstance(request, list) else [request]
        return [row if _is_fields(row) else {"request": row} for row in rows]


def _entry_point(adapter: str, target: str) -> EntryPoint:
    module, colon, qualname = target.partition(":")
    parts = [*module.split("."), *qualname.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ValueError(f"a target is written 'package.module:Qualified.name', got {target!r}")
    return EntryPoint(adapter, module, qualname, framework=parts[0])


def _is_fields(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)
