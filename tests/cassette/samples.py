"""Classes of the kinds that users write, for trees to hold. Found again by name, so at top level."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Colour(enum.Enum):
    RED = "red"
    GREEN = (0, 255, 0)
    LIME = (0, 255, 0)  # noqa: PIE796 - an alias


class Unstorable(enum.Enum):
    """Its value is of a type that no codec knows; a member is found by name all the same."""

    MEMBER = type


class Priority(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Role(str, enum.Enum):
    USER = "user"
    ASSISTANT = "assistant"


class Permission(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


Point = namedtuple("Point", "x y")


class Turn(NamedTuple):
    role: Any
    content: Any = None


class Labelled(Point):
    """A named tuple that takes attributes."""


@dataclass
class Sample:
    prompt: Any
    reward: Any = 0.0


@dataclass(frozen=True)
class Frozen:
    value: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    value: Any
    other: Any = None


class Base:
    __slots__ = ("__private", "hidden")


@dataclass(slots=True)
class Derived(Base):
    """Has a slot that is no field."""

    value: Any


@dataclass
class Late:
    """Has a field that its constructor doesn't set."""

    value: Any
    computed: Any = field(init=False, repr=False)


@dataclass
class Checked:
    """Has a constructor that must not run when an instance is read."""

    value: Any

    def __post_init__(self):
        raise AssertionError("a constructor ran")


class Descriptor:
    """A descriptor that must not run when an instance is written or read."""

    def __get__(self, instance, owner=None):
        if instance is None:
            return 0
        raise AssertionError("a descriptor ran")

    def __set__(self, instance, value):
        instance._kept = value


@dataclass
class Described:
    value: Any = Descriptor()


@dataclass
class Mortal:
    """Runs code when it goes away."""

    value: Any

    def __del__(self):
        pass


@dataclass
class Failure(Exception):  # noqa: N818 - named as users would
    """Is more than its attributes."""

    value: Any


@dataclass
class Mapping(dict):
    """Is more than its attributes."""

    value: Any = None


class Outer:
    @dataclass
    class Inner:
        value: Any


def local_class():
    @dataclass
    class Local:
        value: Any = 1

    return Local


class Opaque:
    """No codec knows it."""
