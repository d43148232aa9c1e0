"""Any value in lines: containers part by part, arrays as ``f32[8,128]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_cassettes.display.arrays import array_type
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import shorten

_INDENT = "  "
_WIDTH = 60
_TIMES = "\N{MULTIPLICATION SIGN}"
_MORE = (" field", " fields", " item", " items")
"""How a line ends below which there are more."""
_MOST_ITEMS = 12
"""How many items a tuple has that is told item by item: they are different things, as a function returns them."""


def outline(value: Any, depth: int = 0) -> Iterator[str]:
    """Give the lines of a value; of a list, the first item stands for all.

    Args:
        value: Plain containers and arrays.
        depth: How deep the lines are indented.
    """
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _entry(visible(str(name)), item, depth)
    elif _is_record(value):
        for place, item in enumerate(value):
            yield from _entry(str(place), item, depth)
    elif isinstance(value, (list, tuple)) and value and not _is_flat(value):
        yield from outline(value[0], depth)
    else:
        yield _INDENT * depth + summary(value)


def summary(value: Any) -> str:
    """Write a value in one line; what has too many parts for that, as how many it has."""
    if getattr(value, "ndim", 0):
        return array_type(str(value.dtype), value.shape)
    if _is_record(value):
        return _counted(len(value), "item")
    if isinstance(value, (list, tuple)) and value:
        return _listed(value)
    if isinstance(value, Mapping):
        text = visible(repr(value)) if _is_small(value) else ""
        return text if 0 < len(text) <= _WIDTH else _counted(len(value), "field")
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()
    return visible(shorten(value, _WIDTH))


def _entry(name: str, item: Any, depth: int) -> Iterator[str]:
    text = summary(item)
    yield f"{_INDENT * depth}{name}  {text}"
    if text.endswith(_MORE):
        yield from outline(item, depth + 1)


def _listed(values: list[Any] | tuple[Any, ...]) -> str:
    """Write a list: the rows of a jagged array as one array, ``i64[16,22..64]``."""
    first, count = values[0], len(values)
    if all(getattr(value, "ndim", 0) for value in values):
        sizes = sorted({len(value) for value in values})
        ragged = "..".join(dict.fromkeys((str(sizes[0]), str(sizes[-1]))))
        return array_type(str(first.dtype), [count, ragged, *first.shape[1:]])
    whole = repr(list(values))
    if len(whole) <= _WIDTH and _is_flat(values):
        return visible(whole)
    return f"{count} {_TIMES} {summary(first)}"


def _counted(count: int, part: str) -> str:
    return f"{count} {part}" if count == 1 else f"{count} {part}s"


def _is_flat(values: list[Any] | tuple[Any, ...]) -> bool:
    """Tell whether a list is told in one line: of arrays, or of what is no container."""
    return not any(isinstance(value, (Mapping, list, tuple)) for value in values)


def _is_record(value: Any) -> bool:
    """Tell whether it is a short tuple with containers or arrays in it."""
    is_short = isinstance(value, tuple) and len(value) <= _MOST_ITEMS
    return is_short and any(
        getattr(item, "ndim", 0) or isinstance(item, (Mapping, list, tuple)) for item in value
    )


def _is_small(value: Any) -> bool:
    """Tell whether a value's repr is worth reading: there is no array in it."""
    if isinstance(value, Mapping):
        return all(map(_is_small, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_small, value))
    return not getattr(value, "ndim", 0)
