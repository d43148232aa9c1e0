"""Checks of what the user gave, at the with-statement: before any work can be lost."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter

PATH_VARIABLE = "ROLLOUT_CASSETTES_PATH"
DEFAULT_PATH = "cassettes/default"

MODES = ("cache", "repeat")
ON_EXISTING = ("error", "skip", "overwrite")
ON_UNSTORABLE = ("warn", "error")
ON_MISS = ("error", "generate", "record")
ON_MISMATCH = ("error", "warn")
ON_UNPLAYED = ("ignore", "warn", "error")
RECORD_MODES = ("once", "none", "new_steps", "all", "rewrite")


def word(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Return an option's value if it is one of the known words.

    Raises:
        ValueError: If it isn't; the message lists the known words.
    """
    if value in known:
        return str(value)
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    words = ", ".join(repr(each) for each in known)
    raise ValueError(f"{name} is one of {words}; got {value!r}{hint}")


def compression(value: Any) -> str | None:
    """Return a known compression.

    Raises:
        ValueError: If it is neither ``"zstd"`` nor None.
    """
    if value is None or value == "zstd":
        return None if value is None else "zstd"
    raise ValueError(f"compression is 'zstd' or None; got {value!r}")


def cassette_path(path: str | os.PathLike[str] | None) -> Path:
    """Return where the cassette is: as given, else from the environment, else the default.

    Raises:
        TypeError: If the path is not a path.
    """
    if path is None:
        path = os.environ.get(PATH_VARIABLE) or DEFAULT_PATH
    return Path(path).expanduser()


def adapters(given: Iterable[Adapter] | Adapter | None) -> list[Adapter] | None:
    """Return the adapters that a session uses; None for all that are known.

    Raises:
        TypeError: If something given is no adapter.
        ValueError: If two of them have the same name.
    """
    if given is None:
        return None
    chosen = [given] if isinstance(given, Adapter) else list(given)
    for adapter in chosen:
        if not isinstance(adapter, Adapter):
            raise TypeError(
                f"adapters= takes adapters such as adapters.function(...), got {adapter!r}"
            )
    names = [adapter.name for adapter in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"each adapter needs a name of its own, got {names}")
    return chosen
