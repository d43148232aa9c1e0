"""Checks of what the user gave, at the with-statement: before any work can be lost."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from rollout_cassettes.adapters import Adapter, named
from rollout_cassettes.cassette import Key
from rollout_cassettes.errors import shorten

PATH_VARIABLE = "ROLLOUT_CASSETTES_PATH"
DEFAULT_PATH = "cassettes/default"

Mode = Literal["cache", "repeat"]
OnExisting = Literal["error", "skip", "overwrite"]
OnUnstorable = Literal["warn", "error"]
OnMiss = Literal["error", "generate", "record"]
OnMismatch = Literal["error", "warn"]
Engines = Literal["live", "off"]
OnUnplayed = Literal["ignore", "warn", "error"]
OnFailure = Literal["keep", "discard"]
RecordMode = Literal["once", "none", "new_steps", "all", "rewrite"]
Compression = Literal["zstd"] | None
Adapters = Iterable[Adapter | str] | Adapter | str | None

T = TypeVar("T")

_PLAIN = (type(None), bool, int, float, str)
_INTEGERS = range(-(2**63), 2**64)


def word(name: str, value: T, words: Any) -> T:
    """Return an option's value if it is one of the words of a ``Literal``.

    Raises:
        ValueError: If it isn't; the message lists the known words.
    """
    known = get_args(words)
    if isinstance(value, str) and value in known:
        return value
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"{name} is one of {', '.join(map(repr, known))}; got {value!r}{hint}")


def engines(value: Engines, on_miss: OnMiss) -> Engines:
    """Return what is to be done with the inference engine.

    Raises:
        ValueError: If it is neither ``"live"`` nor ``"off"``, or is off and asked to generate.
    """
    if word("engines", value, Engines) == "off" and on_miss != "error":
        raise ValueError(f"engines='off' leaves nothing that on_miss={on_miss!r} could ask")
    return value


def compression(value: Compression) -> Compression:
    """Return a known compression.

    Raises:
        ValueError: If it is neither ``"zstd"`` nor None.
    """
    if value not in ("zstd", None):
        raise ValueError(f"compression is 'zstd' or None; got {value!r}")
    return value


def truth(name: str, value: object) -> bool:
    """Return an option's value if it is True or False.

    Raises:
        TypeError: If it isn't: a word would count as True, ``"no"`` too.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False; got {value!r}")
    return value


def cassette_path(path: str | os.PathLike[str] | None) -> Path:
    """Return where the cassette is: as given, else from the environment, else the default.

    The path is absolute, since a training may change the working directory, as Hydra does.

    Raises:
        TypeError: If the path is not a path.
        ValueError: If it is empty.
    """
    if path is None:
        path = os.environ.get(PATH_VARIABLE) or DEFAULT_PATH
    if not os.fspath(path):
        raise ValueError("path is empty: leave it out for the default")
    return Path(path).expanduser().absolute()


def metadata(given: Any) -> dict[str, Any]:
    """Return a copy of metadata that consists of plain values.

    Raises:
        TypeError: If it isn't a mapping, or a value is not plain; the message says where.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(type(name) is str for name in given):
        raise TypeError(f"metadata is a mapping from names to plain values; got {shorten(given)}")
    return {name: _plain(value, "metadata", name) for name, value in given.items()}


def _plain(value: Any, where: str, name: Any) -> Any:
    here = f"{where}[{name!r}]"
    if type(value) in _PLAIN and not (type(value) is int and value not in _INTEGERS):
        return value
    if type(value) in (list, tuple):
        return [_plain(item, here, number) for number, item in enumerate(value)]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(item, here, key) for key, item in value.items()}
    raise TypeError(
        f"{here} is {shorten(value)}: metadata holds None, truth values, numbers of 64 bits, "
        "strings, lists, and dicts with strings as keys"
    )


def phases(given: Iterable[str] | str | None) -> frozenset[str] | None:
    """Return the phases that a session covers; None leaves it to the adapters.

    Raises:
        TypeError: If something given is no string.
        ValueError: If none is given, or one can't be a phase.
    """
    if given is None:
        return None
    chosen = [given] if isinstance(given, str) else list(given)
    if not chosen:
        raise ValueError("phases is empty: leave it out for the training rollouts")
    for phase in chosen:
        if not isinstance(phase, str):
            raise TypeError(f"phases takes words such as 'train' and 'val', got {phase!r}")
        _ = Key(0, phase).stem
    return frozenset(chosen)


def adapters(given: Adapters) -> list[Adapter] | None:
    """Return the adapters that a session uses, given or named; None for all that are known.

    Raises:
        TypeError: If something given is no adapter.
        ValueError: If no adapter has that name, one of them intercepts nothing, or two have the same
            name or entry point.
        AdapterLoadError: If a distribution offers one of that name that can't be used.
    """
    if given is None:
        return None
    several = [given] if isinstance(given, (Adapter, str)) else list(given)
    chosen = [named(each) if isinstance(each, str) else each for each in several]
    for adapter in chosen:
        if not isinstance(adapter, Adapter):
            raise TypeError(f"adapters= takes adapters or their names, got {adapter!r}")
        if not adapter.entry_points:
            raise ValueError(
                f"the adapter {adapter.name!r} intercepts nothing: give it a target, such as "
                "function('package.module:Qualified.name')"
            )
    _refuse_twice("name", [adapter.name for adapter in chosen])
    points = [point for adapter in chosen for point in adapter.entry_points if point.claim]
    _refuse_twice("entry point", [f"{point}, {point.role.value}" for point in points])
    return chosen


def _refuse_twice(what: str, given: list[str]) -> None:
    twice = sorted({each for each in given if given.count(each) > 1})
    if twice:
        raise ValueError(f"each adapter needs its own {what}; there twice: {', '.join(twice)}")
