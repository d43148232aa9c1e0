"""Is the live request the one that was recorded? And if not, where do they differ?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.errors import RequestMismatchError, shorten
from rollout_cassettes.session.difference import describe

Rows = Sequence[Mapping[str, Any]]

_SHORT = 100
"""Up to how many characters values are shown whole."""

_MADE_UP = re.compile(r"NestedTensor\(| at 0x[0-9a-f]+>")
"""What reprs have in them that differs between equal values: names of lengths, places in memory."""


def fingerprint(rows: Rows) -> list[str]:
    """Return a SHA-256 in hex for each row, over its fields' values, dtypes and shapes."""
    return [digest(dict(row)) for row in rows]


def mismatch(path: Path, key: Key, recorded: Rows, live: Rows) -> RequestMismatchError | None:
    """Return the error for a live request that is not the recorded one; None if it is.

    Args:
        path: The cassette's directory.
        key: The interaction that would have been played.
        recorded: The recorded rows.
        live: The live rows.
    """
    row, field = _first_difference(recorded, live)
    was: Any
    now: Any
    if len(recorded) != len(live):
        row, field, was, now = None, None, len(recorded), len(live)
        where = f"it had {was} {'row' if was == 1 else 'rows'}, and has {now} now"
    elif row is not None and field is not None:
        was, now = recorded[row].get(field), live[row].get(field)
        told = _told(recorded[row], live[row], field)
        where = f"row {row}, field {field!r}{'' if told.startswith('[') else ' '}{told}"
    else:
        return None
    return RequestMismatchError(
        f"The live request is not the one recorded for {key} in {path}: {where}.",
        fixes=[
            "Run with what the recorded run had: the same data, seed, batch size and code.",
            f"Record it again: record({key.step}, path={str(path)!r}, on_existing='overwrite').",
            "Replay the recording all the same: replay(..., on_mismatch='warn').",
        ],
        path=path,
        step=key.step,
        phase=key.phase,
        row=row,
        field=field,
        recorded=was,
        live=now,
    )


def _told(recorded: Mapping[str, Any], live: Mapping[str, Any], field: str) -> str:
    if field not in recorded:
        return f"was absent, and is now {shorten(live[field])}"
    if field not in live:
        return f"was {shorten(recorded[field])}, and is now absent"
    was, now = repr(recorded[field]), repr(live[field])
    is_short = max(len(was), len(now)) <= _SHORT and "\n" not in was + now
    if was != now and is_short and not _MADE_UP.search(was + now):
        return f"was {was}, and is now {now}"
    return describe(recorded[field], live[field])


def _first_difference(recorded: Rows, live: Rows) -> tuple[int | None, str | None]:
    """Return the first row and field that differ; None for both where the rows do not."""
    for row, (was, now) in enumerate(zip(recorded, live, strict=False)):
        for field in [*was, *(name for name in now if name not in was)]:
            if field not in was or field not in now or digest(was[field]) != digest(now[field]):
                return row, field
    return None, None
