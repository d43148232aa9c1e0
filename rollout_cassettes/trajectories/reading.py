"""Trajectories from a recording of which nothing is known but its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollout_cassettes.trajectories.columns import NAMES, from_columns, length
from rollout_cassettes.trajectories.trajectory import Trajectory

_PER_TOKEN = ("response_ids", "mask", "log_probs", "rewards")


def read(request: Any, response: Any) -> list[Trajectory]:
    """Return the trajectories of a response, as far as it shows that it has some.

    A dict is taken for columns, and a list for rows. Where the request has as many rows, its
    fields belong to them. What has no rows gives no trajectories.

    Args:
        request: What was asked for: plain containers and numpy arrays.
        response: What was answered.
    """
    columns = _columns(response, "response")
    if not columns:
        return []
    rows = next(map(length, columns.values()))
    asked = {n: c for n, c in _columns(request, "prompt").items() if length(c) == rows}
    found = [_trimmed(row, columns) for row in from_columns({**asked, **columns})]
    return found if any(map(_is_told, found)) else []


def _is_told(row: Trajectory) -> bool:
    """Tell whether anything of a row was recognized, so that it is more than a list's item."""
    parts = (row.response, row.response_ids, row.score)
    return any(part is not None for part in parts)


def _trimmed(row: Trajectory, columns: Mapping[str, Any]) -> Trajectory:
    """Leave padding out: tokens of a batch in one array, after the last that its mask has."""
    ids, mask = row.response_ids, row.mask
    padded = any(getattr(columns.get(name), "ndim", 0) > 1 for name in NAMES["response_ids"])
    if not padded or ids is None or mask is None or len(ids) != len(mask):
        return row
    places = mask.nonzero()[0]
    end = int(places[-1]) + 1 if len(places) else 0
    parts = {name: getattr(row, name) for name in _PER_TOKEN}
    return replace(row, **{n: p[:end] for n, p in parts.items() if p is not None})


def _columns(value: Any, name: str) -> dict[str, Any]:
    """Return the columns of a value; of a list whose items have no fields, one of that name."""
    if isinstance(value, Mapping):
        return _of_one_length({str(n): c for n, c in value.items() if length(c)})
    if not isinstance(value, list) or not value:
        return {}
    if all(isinstance(item, Mapping) for item in value):
        names = dict.fromkeys(str(n) for item in value for n in item)
        return {n: [item.get(n) for item in value] for n in names}
    return {name: value}


def _of_one_length(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that have as many rows as most of them have."""
    lengths = [length(column) for column in columns.values()]
    if not lengths:
        return {}
    rows = max(lengths, key=lambda size: (lengths.count(size), size))
    return {name: column for name, column in columns.items() if length(column) == rows}
