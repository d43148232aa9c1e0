"""Codecs for the classes that users write: enumerations, named tuples and dataclasses.

A cassette names such a class as ``module:Qualified.name``. Nothing is imported because a cassette
says so: the class must be one that this process has imported already, or belong to a module of
the short list below. No constructor runs; the attributes are put where they were.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any

from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import AS_PLAIN, Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter, unstorable
from rollout_cassettes.errors import UnstorableValueError

_IMPORTABLE = {
    "verl.protocol": "verl",
    "transfer_queue.metadata": "TransferQueue",
    "slime.rollout.base_types": "slime",
    "slime.utils.types": "slime",
    "miles.rollout.base_types": "miles",
    "miles.utils.types": "miles",
    "skyrl.train.generators.base": "skyrl",
    "skyrl_train.generators.base": "skyrl-train",
    "openrlhf.trainer.ppo_utils.experience": "openrlhf",
}
"""Modules that a cassette may cause to be imported, those of the batches that our adapters store; each
with the distribution that it comes with."""


def is_namedtuple(cls: type) -> bool:
    """Tell whether a class was made by ``namedtuple`` or ``typing.NamedTuple``."""
    return issubclass(cls, tuple) and type(getattr(cls, "_fields", None)) is tuple


def is_dataclass(cls: type) -> bool:
    """Tell whether a class is a dataclass that runs nothing when an instance goes away."""
    return dataclasses.is_dataclass(cls) and not hasattr(cls, "__del__")


def is_enum(cls: type) -> bool:
    """Tell whether a class is an enumeration."""
    return issubclass(cls, enum.Enum)


# ---- finding classes by name


def _name_of(value: Any, path: str) -> str:
    cls = type(value)
    name = f"{cls.__module__}:{cls.__qualname__}"
    if _find(name) is not cls:
        raise unstorable(value, path, f"its class can't be found again under its name {name}")
    return name


def _find(name: str) -> Any:
    """Return what ``module:Qualified.name`` names in the modules imported so far, or None."""
    module_name, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found


def _class_of(node: dict[str, Any], joiner: Joiner, belongs: Callable[[type], bool]) -> Any:
    name = node["class"]
    module_name = name.partition(":")[0]
    if module_name in _IMPORTABLE:
        try:
            importlib.import_module(module_name)
        except ImportError as error:
            package = _IMPORTABLE[module_name]
            reason = f"{package} can't be imported ({error})"
            install = f"Install {package}, as in the environment that recorded."
            raise joiner.unavailable(name, reason, AS_PLAIN, install) from error
    cls = _find(name)
    if cls is None:
        reason = "this process has not imported it, and a cassette imports nothing by itself"
        raise joiner.unavailable(name, reason, f"Run `import {module_name}` first.", AS_PLAIN)
    if not (isinstance(cls, type) and belongs(cls)):
        raise ValueError(f"{name} is no such class")
    return cls


def _changed(
    node: dict[str, Any], joiner: Joiner, recorded: Iterable[str], now: Iterable[str]
) -> UnstorableValueError:
    return joiner.unavailable(
        node["class"],
        f"it was recorded with the fields {list(recorded)}, and has {list(now)} here",
        "Use the version of the class that the cassette was recorded with, or record again.",
        AS_PLAIN,
    )


# ---- enumerations


def _split_enum(value: enum.Enum, _into: Splitter, path: str) -> dict[str, Any]:
    """Name a member; a combination of flags may have no name, and is kept as its value."""
    entries = {"class": _name_of(value, path), "name": value.name}
    return {**entries, "value": value.value} if isinstance(value, enum.Flag) else entries


def _join_enum(node: dict[str, Any], joiner: Joiner) -> enum.Enum:
    cls = _class_of(node, joiner, is_enum)
    member: enum.Enum | None = cls.__members__.get(node["name"])
    if member is not None:
        return member
    if issubclass(cls, enum.Flag):
        combination: enum.Enum = cls(node["value"])
        return combination
    raise _changed(node, joiner, [node["name"]], cls.__members__)


# ---- named tuples


def _split_namedtuple(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    if getattr(value, "__dict__", None):
        raise unstorable(value, path, "it has attributes beside its fields")
    fields = zip(value._fields, value, strict=True)
    items = [into.child(item, path, name) for name, item in fields]
    return {"class": _name_of(value, path), "fields": list(value._fields), "items": items}


def _join_namedtuple(node: dict[str, Any], joiner: Joiner) -> Any:
    cls = _class_of(node, joiner, is_namedtuple)
    items = joiner.value(node["items"])
    if list(cls._fields) != node["fields"]:
        raise _changed(node, joiner, node["fields"], cls._fields)
    if len(items) != len(cls._fields):
        raise ValueError(f"{len(items)} items for the fields {cls._fields}")
    return tuple.__new__(cls, items)


# ---- dataclasses


def _split_dataclass(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    object.__new__(type(value))  # refuses what is more than its attributes, such as an exception
    attributes = _attributes(value)
    names = [item.name for item in dataclasses.fields(value) if item.name in attributes]
    extras = [name for name in attributes if name not in names]
    return {
        "class": _name_of(value, path),
        "fields": {name: into.child(attributes[name], path, name) for name in names},
        "extras": {name: into.child(attributes[name], path, name) for name in extras},
    }


def _join_dataclass(node: dict[str, Any], joiner: Joiner) -> Any:
    cls = _class_of(node, joiner, is_dataclass)
    declared = [item.name for item in dataclasses.fields(cls)]
    if not set(declared).issuperset(node["fields"]):
        raise _changed(node, joiner, node["fields"], declared)
    value, slots = object.__new__(cls), _slots(cls)
    for name, item in [*node["fields"].items(), *node["extras"].items()]:
        if name in slots:
            slots[name].__set__(value, joiner.value(item))
        else:
            value.__dict__[name] = joiner.value(item)
    return value


def _attributes(value: Any) -> dict[str, Any]:
    """Return an object's own attributes: those in slots, and those in its ``__dict__``."""
    attributes: dict[str, Any] = {}
    for name, slot in _slots(type(value)).items():
        with suppress(AttributeError):  # a slot may be empty
            attributes[name] = slot.__get__(value)
    return {**attributes, **getattr(value, "__dict__", {})}


def _slots(cls: type) -> dict[str, MemberDescriptorType]:
    return {
        name: slot
        for base in reversed(cls.__mro__)
        for name, slot in vars(base).items()
        if isinstance(slot, MemberDescriptorType)
    }


add(Codec("enum", _split_enum, _join_enum), family=is_enum)
add(Codec("namedtuple", _split_namedtuple, _join_namedtuple), family=is_namedtuple)
add(Codec("dataclass", _split_dataclass, _join_dataclass), family=is_dataclass)
