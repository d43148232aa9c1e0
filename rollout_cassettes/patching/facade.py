"""Façades: functions that make a coroutine function callable with and without ``await``.

verl 0.9.1's ``auto_await`` looks at the frame of its caller to know which is wanted. A wrapper
around it would be that caller. So the wrapper goes inside: around the coroutine function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


def inner_of(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the coroutine function that a façade closes over; None if it is no façade."""
    inner: Any = getattr(function, "__wrapped__", None)
    if inspect.iscoroutinefunction(function) or not inspect.iscoroutinefunction(inner):
        return None
    cells = getattr(function, "__closure__", None) or ()
    return inner if any(_holds(cell, inner) for cell in cells) else None


def around(facade: FunctionType, inner: Callable[..., Any]) -> FunctionType:
    """Return a copy of a façade that closes over another coroutine function."""
    closure = tuple(
        CellType(inner) if _holds(cell, facade.__wrapped__) else cell  # type: ignore[attr-defined]
        for cell in facade.__closure__ or ()
    )
    copy = FunctionType(
        facade.__code__, facade.__globals__, facade.__name__, facade.__defaults__, closure
    )
    copy.__kwdefaults__ = facade.__kwdefaults__
    functools.update_wrapper(copy, facade)
    copy.__wrapped__ = inner  # type: ignore[attr-defined]
    return copy


def _holds(cell: CellType, value: Any) -> bool:
    try:
        return cell.cell_contents is value
    except ValueError:  # an empty cell
        return False
