"""Is the live request the one that was recorded? And if not, where do they differ?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.tensors import raw_bytes
from rollout_cassettes.cassette.tree import split
from rollout_cassettes.errors import RequestMismatchError, shorten

Rows = Sequence[Mapping[str, Any]]


def fingerprint(rows: Rows) -> list[str]:
    """Return a SHA-256 in hex for each row, over its fields' values, dtypes and shapes."""
    return [digest(dict(row)) for row in rows]


def digest(value: Any) -> str:
    """Return a SHA-256 in hex over a value: equal for values that are equal to the bit."""
    parts = split(value, "", portable=True)
    state = hashlib.sha256(msgpack.packb(parts.skeleton, unicode_errors="surrogatepass"))
    for name, tensor in parts.tensors.items():
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        state.update(raw_bytes(tensor))
    return state.hexdigest()


def mismatch(path: Path, key: Key, recorded: Rows, live: Rows) -> RequestMismatchError:
    """Return the error for a live request that is not the recorded one.

    Args:
        path: The cassette's directory.
        key: The interaction that was asked for.
        recorded: The recorded rows.
        live: The live rows.
    """
    row, field, was, now = difference(recorded, live)
    where = "the number of rows" if row is None else f"row {row}, field {field!r}"
    return RequestMismatchError(
        f"The request for {key} is not the one recorded in {path}: {where} was "
        f"{shorten(was)}, and is now {shorten(now)}.",
        fixes=[
            "Give the trainer the data, the seed and the batch size of the recorded run.",
            'Record again what changed: record(..., on_existing="overwrite").',
            'Replay all the same: replay(..., on_mismatch="warn").',
        ],
        path=path,
        step=key.step,
        phase=key.phase,
        row=row,
        field=field,
        recorded=was,
        live=now,
    )


def difference(recorded: Rows, live: Rows) -> tuple[int | None, str | None, Any, Any]:
    """Return the first row and field that differ, and both values; row None for the row count."""
    if len(recorded) != len(live):
        return None, None, len(recorded), len(live)
    for row, (was, now) in enumerate(zip(recorded, live, strict=True)):
        for field in [*was, *(name for name in now if name not in was)]:
            if field not in was or field not in now or digest(was[field]) != digest(now[field]):
                return row, field, was.get(field), now.get(field)
    raise AssertionError("the requests have different fingerprints and equal rows")
