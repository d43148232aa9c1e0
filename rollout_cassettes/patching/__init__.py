"""Puts wrappers around entry points while a session is open, and takes them off again.

This package holds the only global state of the library: the open sessions, innermost first, and
the patches that are on.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout_cassettes.patching import wrapper
from rollout_cassettes.patching.call import Call, EntryPoint, Role
from rollout_cassettes.patching.imports import once_imported
from rollout_cassettes.patching.patch import Patch, lock
from rollout_cassettes.patching.wrapper import Answer, Awaited, Handler, is_taken, wrap

__all__ = [
    "Answer",
    "Awaited",
    "Call",
    "EntryPoint",
    "Handler",
    "Role",
    "activate",
    "deactivate",
    "is_taken",
    "once_imported",
    "unseen",
    "wrap",
]

_patches: dict[str, Patch] = {}


def activate(handler: Handler, points: Iterable[EntryPoint]) -> None:
    """Let a session answer calls of entry points, from now on and before all other sessions.

    Entry points of a module that is not imported yet are patched when it is.

    Raises:
        EntryPointNotFoundError: If an imported module lacks an entry point; nothing is patched then.
    """
    with lock:
        acquired: list[EntryPoint] = []
        try:
            for point in points:
                acquired.append(point)
                _patches.setdefault(point.target, Patch(point)).acquire(point)
        except BaseException:
            _release(acquired)
            raise
        wrapper.push(handler)


def deactivate(handler: Handler, points: Iterable[EntryPoint]) -> None:
    """Undo :func:`activate`; patches go when the last session that wants them does."""
    with lock:
        wrapper.remove(handler)
        _release(points)


def unseen(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Return those entry points of open sessions that are not patched, for want of their module."""
    return [point for point in points if not _patches[point.target].is_on()]


def _release(points: Iterable[EntryPoint]) -> None:
    for point in points:
        if _patches[point.target].release(point):
            del _patches[point.target]
