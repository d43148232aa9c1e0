"""A part of a recording: some of its prompts, some of its fields.

Recordings are cut while they are taken apart: their values are skeletons, so that neither the
framework nor the classes of what was recorded are needed. What is said here of a skeleton is said
in docs/format.md.

The functions cut batches whose columns have a value for each row, which is what an adapter's methods
do by default.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from rollout_cassettes.cassette.tree.codec import CUSTOM, KIND
from rollout_cassettes.cassette.tree.picking import Picker

_AWAITED = f"{CUSTOM}rollout_cassettes.awaited"
_UID = "uid"


class Skeletons(NamedTuple):
    """A recording that is taken apart.

    Attributes:
        request: The skeleton of what :meth:`Adapter.request` gave; of a pair, of the list of them.
        response: The skeleton of what :meth:`Adapter.capture` gave.
        marks: The fingerprint of each row of the request; None where requests are not compared.
        picker: Picks rows from the two.
    """

    request: Any
    response: Any
    marks: Sequence[str] | None
    picker: Picker


class Group(NamedTuple):
    """The rows of one prompt.

    Attributes:
        rows: Its rows in the response.
        uid: Its name, by which other interactions may know it; None where there is none.
    """

    rows: list[int]
    uid: str | None = None


class Excerpt(NamedTuple):
    """What is kept of a recording.

    Attributes:
        request: The skeleton of the request.
        response: The skeleton of the response.
        asked: The rows of the request that are kept; None for all.
    """

    request: Any
    response: Any
    asked: list[int] | None = None


def grouped(names: Iterable[Hashable]) -> list[list[int]]:
    """Return the rows of each name, in the order in which the names come first."""
    groups: dict[Hashable, list[int]] = {}
    for row, name in enumerate(names):
        groups.setdefault(name, []).append(row)
    return list(groups.values())


def rows_of(groups: Iterable[Group]) -> list[int]:
    """Return the rows of groups, in their recorded order."""
    return sorted(row for group in groups for row in group.rows)


def matched(wanted: Iterable[Any], among: Iterable[Any]) -> list[int | None]:
    """Return for each of these where an equal one is, each of which serves once; None without one.

    Args:
        wanted: Plain values, or skeletons.
        among: Those that serve.
    """
    places: dict[str, list[int]] = {}
    for place, each in enumerate(among):
        places.setdefault(repr(each), []).append(place)
    found = (places.get(repr(each)) for each in wanted)
    return [free.pop(0) if free else None for free in found]


# ---- columns


def columns_of(node: Any) -> dict[str, Any] | None:
    """Return the columns of a batch by name; None if it is none."""
    if isinstance(node, dict) and node.get(KIND) == _AWAITED:
        return columns_of(node["data"])
    if isinstance(node, dict) and KIND not in node:
        return node
    if isinstance(node, dict) and node[KIND] == "tensordict.TensorDict":
        fields: dict[str, Any] = node["fields"]
        return fields
    return None


def without(node: Any, names: Collection[str]) -> Any:
    """Return a batch without the columns of these names.

    Raises:
        ValueError: If it is none.
    """
    columns = columns_of(node)
    if columns is None:
        raise ValueError("its response is no batch of named fields")
    kept = {name: column for name, column in columns.items() if name not in names}
    if KIND not in node:
        return kept
    if node[KIND] == _AWAITED:
        return {**node, "data": without(node["data"], names)}
    return {**node, "fields": kept}


# ---- rows


def columnar_groups(recorded: Skeletons) -> list[Group]:
    """Return the prompts of a batch: equal rows of the request, else equal uids, else each row.

    Raises:
        ValueError: If it has no rows, or others than its request has.
    """
    count = _length(recorded.response, recorded.picker)
    if recorded.marks is None:
        uids = (columns_of(recorded.response) or {}).get(_UID)
        names = range(count) if uids is None else map(str, recorded.picker.plain(uids))
        return [Group(rows) for rows in grouped(names)]
    asked = len(recorded.marks)
    if not isinstance(recorded.request, list) or {len(recorded.request), asked} != {count}:
        raise ValueError(f"its request has {asked} rows, and its response has {count}")
    return [Group(rows) for rows in grouped(recorded.marks)]


def columnar_excerpt(recorded: Skeletons, groups: Sequence[Group]) -> Excerpt:
    """Return a batch with the rows of these prompts alone."""
    rows = rows_of(groups)
    response = _picked(recorded.response, rows, recorded.picker)
    if recorded.marks is None:
        return Excerpt(recorded.request, response)
    return Excerpt(recorded.picker.rows(recorded.request, rows), response, rows)


def _length(node: Any, picker: Picker) -> int:
    """Return how many rows a batch has.

    Raises:
        ValueError: If it has none, or not all of its columns have as many.
    """
    if isinstance(node, dict) and node.get(KIND) == _AWAITED:
        return _length(node["data"], picker)
    columns: dict[Any, Any] | None = None
    if isinstance(node, dict) and node.get(KIND) == "tuple":
        columns = dict(enumerate(node["items"]))
    elif isinstance(node, dict) and KIND not in node:
        columns = node
    if columns is None:
        count = picker.length(node)
        if count is None:
            raise ValueError("its response has no rows")
        return count
    lengths = {name: picker.length(column) for name, column in columns.items()}
    rows = next(iter(lengths.values()), None)
    for name, length in lengths.items():
        if length is None or length != rows:
            told = "no rows" if length is None else f"{length} rows, where others have {rows}"
            raise ValueError(f"the field {name!r} of its response has {told}")
    if rows is None:
        raise ValueError("its response is empty")
    return rows


def _picked(node: Any, rows: Sequence[int], picker: Picker) -> Any:
    if isinstance(node, dict) and node.get(KIND) == _AWAITED:
        return {**node, "data": _picked(node["data"], rows, picker)}
    if isinstance(node, dict) and node.get(KIND) == "tuple":
        return {**node, "items": [picker.rows(item, rows) for item in node["items"]]}
    if isinstance(node, dict) and KIND not in node:
        return {name: picker.rows(column, rows) for name, column in node.items()}
    return picker.rows(node, rows)
