"""Which fields of a cassette's responses replays have read: a file beside its interactions."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from rollout_cassettes.cassette.damage import damaged

NAME = "reads.json"

_FORMAT = "rollout_cassettes.reads"
_VERSION = 1

Reads = dict[str, list[str]]
"""The names of the fields that were read, by the adapter that recorded them."""


def load_reads(directory: Path) -> Reads | None:
    """Return what replays of a cassette have read; None where none was tracked.

    Raises:
        CassetteCorruptError: If the file is not one that :func:`store_reads` makes.
    """
    path = directory / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise damaged(path, f"it is no JSON ({error})") from error
    entries = found if isinstance(found, dict) else {}
    reads = entries.get("reads")
    is_known = (entries.get("format"), entries.get("version")) == (_FORMAT, _VERSION)
    if not is_known or not isinstance(reads, dict):
        raise damaged(path, f"it is no {_FORMAT} of version {_VERSION}")
    if not all(isinstance(n, list) and all(isinstance(e, str) for e in n) for n in reads.values()):
        raise damaged(path, "it lists something else than names")
    return reads


def store_reads(directory: Path, reads: Mapping[str, Iterable[str]]) -> None:
    """Add to what replays of a cassette have read.

    Raises:
        CassetteCorruptError: If there is a file already that is none of ours.
        OSError: If the directory can't be written to.
    """
    before = load_reads(directory) or {}
    names = {
        adapter: sorted({*before.get(adapter, ()), *reads.get(adapter, ())})
        for adapter in sorted({*before, *reads})
    }
    content = {"format": _FORMAT, "version": _VERSION, "reads": names}
    temporary = directory / f".{NAME}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        temporary.replace(directory / NAME)
    finally:
        temporary.unlink(missing_ok=True)
