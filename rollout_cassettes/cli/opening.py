"""Cassettes that a command is given: opened to be looked at, without torch and frameworks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rollout_cassettes.cassette import Cassette, Interaction, Key, open_cassette
from rollout_cassettes.errors import CassetteNotFoundError

_MOST_NAMED = 5


def opened(path: Path) -> Cassette:
    """Open a cassette.

    Raises:
        CassetteNotFoundError: If there is none, or the directory holds no step.
    """
    cassette = open_cassette(path, numpy=True)
    if not cassette.steps:
        raise _empty(path, list(_found_below(path)))
    return cassette


def found_in(paths: Sequence[Path]) -> list[Cassette]:
    """Return the cassettes at paths, and in the directories below them.

    Raises:
        CassetteNotFoundError: If there is none at or below one of the paths.
    """
    found: dict[Path, Cassette] = {}
    for path in paths:
        here = open_cassette(path, numpy=True)
        below = [here] if here.steps else []
        below += [open_cassette(other, numpy=True) for other in _found_below(path)]
        if not below:
            raise _empty(path, [])
        found |= {cassette.path: cassette for cassette in below}
    return list(found.values())


def places(cassettes: Sequence[Cassette]) -> list[tuple[Cassette, Key]]:
    """Return the places of all interactions."""
    return [(cassette, key) for cassette in cassettes for key in cassette.keys]


def by_cassette(
    at: Iterable[tuple[Cassette, Key]],
) -> Iterator[tuple[Cassette, Iterator[tuple[Cassette, Key]]]]:
    """Group places by their cassette, as they come: equal cassettes are two all the same."""
    for _, group in itertools.groupby(at, lambda place: id(place[0])):
        first = next(group)
        yield first[0], itertools.chain([first], group)  # noqa: B031 - gone through once, in order


def opening(at: Iterable[tuple[Cassette, Key]]) -> Iterator[Interaction]:
    """Give the interactions at places, one after the other.

    None is kept: each holds on to what was read of it, and a cassette may be larger than memory.
    """
    for cassette, key in at:
        yield cassette.interaction(key)


def _found_below(path: Path) -> Iterator[Path]:
    for directory, names, _ in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in names:
            below = Path(directory, name)
            if open_cassette(below).steps:
                yield below


def _empty(path: Path, below: Sequence[Path]) -> CassetteNotFoundError:
    named = [f"Name one of those below it: {other}" for other in below[:_MOST_NAMED]]
    fixes = named or ["Record one there: with rollout_cassettes.record(path=...): ..."]
    return CassetteNotFoundError(f"{path} holds no recorded step.", fixes=fixes, path=path)
