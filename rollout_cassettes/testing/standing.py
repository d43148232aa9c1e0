"""What stands at an adapter's entry points: the very objects, to be found there again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rollout_cassettes.patching import EntryPoint

_ABSENT = object()


class Standing(NamedTuple):
    """What one attribute holds.

    Attributes:
        owner: The module or class.
        name: The attribute's name.
        held: The object, as it is in the owner's own namespace.
    """

    owner: Any
    name: str
    held: Any

    @property
    def is_changed(self) -> bool:
        """Tell whether another object is there by now."""
        return vars(self.owner).get(self.name, _ABSENT) is not self.held

    def __str__(self) -> str:
        owner = self.owner
        where = f"{owner.__module__}:{owner.__qualname__}." if isinstance(owner, type) else ""
        return f"{where or f'{owner.__name__}:'}{self.name}"


def standing(points: Iterable[EntryPoint]) -> list[Standing]:
    """Return what stands at those entry points whose module is imported, subclasses included."""
    return [
        Standing(owner, name, vars(owner).get(name, _ABSENT))
        for point in points
        for owner, name in _attributes(point)
    ]


def _attributes(point: EntryPoint) -> Iterator[tuple[Any, str]]:
    owner = owner_of(point)
    name = point.qualname.rpartition(".")[2]
    if owner is None:
        return
    yield owner, name
    if isinstance(owner, type):
        yield owner, "__init_subclass__"
        for subclass in _subclasses(owner):
            yield subclass, name


def owner_of(point: EntryPoint) -> Any:
    """Return the module or class that has the entry point; None where that is not imported."""
    owner: Any = sys.modules.get(point.module)
    for part in point.qualname.split(".")[:-1]:
        owner = getattr(owner, part, None)
    return owner


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
