"""Two cassettes compared: interaction by interaction, row by row, token by token.

What differs between equal runs is left out: uids, versions, and when and how fast it was.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout_cassettes.cassette.interaction import Interaction
from rollout_cassettes.cassette.layout import is_known
from rollout_cassettes.display.arrays import array_type
from rollout_cassettes.errors import shorten
from rollout_cassettes.trajectories import Trajectory

PARTS = (
    *("prompt", "prompt_ids", "response", "response_ids", "mask", "log_probs", "rewards", "score"),
    "metadata",
)
"""What is compared of two rows, in this order."""

MEASURED = ("metrics",)
"""Fields that hold durations, which no two runs have in common."""

_WIDTH = 60


@dataclass(frozen=True)
class Difference:
    """Where two interactions first differ.

    Attributes:
        what: What stands there in each, in words.
        row: The row in the first cassette, counted from 0; None where it is not about rows.
        field: The part of the row, or the path in the response; None where rows are missing.
        token: The place in that part, counted from 0; None where it has no tokens.
    """

    what: str
    row: int | None = None
    field: str | None = None
    token: int | None = None

    def __str__(self) -> str:
        places = (("row", self.row), ("field", self.field), ("token", self.token))
        named = [f"{name} {place}" for name, place in places if place is not None]
        return ", ".join(named) + (": " if named else "") + self.what


@dataclass(frozen=True)
class Comparison:
    """Two interactions of the same place, compared.

    Attributes:
        rows: How many rows there are in each.
        differing: How many of the rows that both have differ.
        first: The first difference; None if there is none.
    """

    rows: tuple[int, int] = (0, 0)
    differing: int = 0
    first: Difference | None = field(default=None)


def compare(
    left: Interaction, right: Interaction, ignored: Collection[str] = MEASURED
) -> Comparison:
    """Compare two interactions.

    Rows are paired by what they are: prompt, session and output, in the order of the request. Where
    the recording has no such numbers, by their order.

    Args:
        left: One, opened with ``numpy=True``.
        right: The other.
        ignored: Fields of rows that are not compared.
    """
    was, now = left.manifest.adapter, right.manifest.adapter
    if was != now:
        return Comparison(first=Difference(f"recorded by {was}, and by {now}"))
    rows = left.trajectories, right.trajectories
    counts = len(rows[0]), len(rows[1])
    found = list(_rows_differing(*rows, ignored))
    first = next(iter(found), None) or _beside_rows(left, right, *rows)
    return Comparison(counts, len(found) if counts[0] == counts[1] else 0, first)


def _beside_rows(
    left: Interaction, right: Interaction, ours: Sequence[Trajectory], theirs: Sequence[Trajectory]
) -> Difference | None:
    """Compare what is no row: the order of rows, and values of unknown layout."""
    if [row.place for row in ours] != [row.place for row in theirs]:
        return Difference("the rows are the same, and come in another order")
    if ours and is_known(left.manifest.adapter):
        return None
    for name in ("request", "response"):
        found = first_difference(getattr(left, name), getattr(right, name), name)
        if found is not None:
            return found
    return None


def _rows_differing(
    ours: Sequence[Trajectory], theirs: Sequence[Trajectory], ignored: Collection[str]
) -> Iterator[Difference]:
    """Give the first difference of each row that differs."""
    if len(ours) != len(theirs):
        yield Difference(f"{len(ours)} rows, and {len(theirs)}")
        return
    pairs = zip(_in_place(ours), _in_place(theirs), strict=True)
    for one, other in sorted(pairs, key=lambda pair: pair[0].row):
        found = _row_difference(one, other, ignored)
        if found is not None:
            yield found


def _in_place(rows: Sequence[Trajectory]) -> list[Trajectory]:
    return sorted(rows, key=lambda row: row.place)


def _row_difference(
    one: Trajectory, other: Trajectory, ignored: Collection[str]
) -> Difference | None:
    for part in PARTS:
        was, now = (_part(row, part, ignored) for row in (one, other))
        found = first_difference(was, now, part)
        if found is not None:
            return Difference(found.what, one.row, found.field, found.token)
    return None


def _part(row: Trajectory, name: str, ignored: Collection[str]) -> Any:
    value = getattr(row, name)
    if name != "metadata":
        return None if name in ignored else value
    return {n: v for n, v in value.items() if n not in ignored}


# ---- any two values


def first_difference(left: Any, right: Any, path: str) -> Difference | None:
    """Return where two plain values first differ: containers by part, arrays by item, to the bit."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        names = [*left, *(name for name in right if name not in left)]
        pairs = ((left.get(n, _ABSENT), right.get(n, _ABSENT), f"{path}.{n}") for n in names)
        return next(filter(None, itertools.starmap(first_difference, pairs)), None)
    if _is_array(left) and _is_array(right):
        return _arrays_difference(left, right, path)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            return Difference(f"{len(left)} items, and {len(right)}", field=path)
        trios = ((a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(left, right, strict=True)))
        return next(filter(None, itertools.starmap(first_difference, trios)), None)
    if type(left) is type(right) and _bits(left) == _bits(right):
        return None
    return Difference(f"{_written(left)}, and {_written(right)}", field=path)


def _arrays_difference(left: Any, right: Any, path: str) -> Difference | None:
    if left.dtype.kind == "O" or right.dtype.kind == "O":
        return first_difference(left.tolist(), right.tolist(), path)
    types = [array_type(str(array.dtype), array.shape) for array in (left, right)]
    parts = [(array.dtype, array.ndim, array.shape[1:]) for array in (left, right)]
    if parts[0] != parts[1]:
        return Difference(f"{types[0]}, and {types[1]}", field=path)
    size = min(len(left), len(right)) if left.ndim else 0
    bytes_ = [array[:size].tobytes() if array.ndim else array.tobytes() for array in (left, right)]
    if bytes_[0] == bytes_[1]:
        if left.shape == right.shape:
            return None
        return Difference(f"{types[0]}, and {types[1]}", field=path, token=size)
    width = len(bytes_[0]) // max(size, 1)
    place = next(n for n, (a, b) in enumerate(zip(*bytes_, strict=True)) if a != b) // width
    was, now = (
        shorten(array[place].tolist() if array.ndim else array.item(), _WIDTH)
        for array in (left, right)
    )
    return Difference(f"{was}, and {now}", field=path, token=place if left.ndim else None)


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "tobytes")


def _bits(value: Any) -> Any:
    """Return what two values share if they are equal to the bit; NaN is itself."""
    if isinstance(value, (set, frozenset)):  # which have no order
        return sorted(map(repr, value))
    return struct.pack("d", value) if isinstance(value, float) else repr(value)


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT = _Absent()


def _written(value: Any) -> str:
    return array_type(str(value.dtype), value.shape) if _is_array(value) else shorten(value, _WIDTH)
