"""Turning what was read from a file into a dataclass: every entry there, and of its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def build(cls: type[Record], entries: Mapping[str, Any]) -> Record:
    """Make a dataclass from entries.

    Args:
        cls: The dataclass.
        entries: A value for each of its fields.

    Raises:
        ValueError: If an entry is missing, unknown, or of another type than its field.
    """
    hints = get_type_hints(cls)
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    if names != entries.keys():
        wrong = sorted(map(str, names ^ entries.keys()))
        raise ValueError(f"these entries are missing or unknown: {', '.join(wrong)}")
    for name, value in entries.items():
        if not matches(value, hints[name]):
            raise ValueError(f"its entry {name!r} is {type(value).__name__}, not {hints[name]}")
    return cls(**entries)


def matches(value: Any, hint: Any) -> bool:
    """Tell whether a value is of an annotated type: a class, ``|``, ``list[…]`` or ``dict[…]``."""
    if hint is Any:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(matches(value, argument) for argument in arguments)
    if origin is list:
        return type(value) is list and all(matches(item, arguments[0]) for item in value)
    if origin is dict:
        return type(value) is dict and all(
            matches(key, arguments[0]) and matches(item, arguments[1])
            for key, item in value.items()
        )
    return type(value) in ((int, float) if hint is float else (hint,))
