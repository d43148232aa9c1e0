"""Codecs for the classes that users write: enumerations, named tuples and dataclasses.

A cassette names such a class as ``module:Qualified.name``. Nothing is imported because a cassette
says so: the class must be one that this process has imported already, or belong to a module of
the short list below. No constructor runs; the fields are put where they were.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import sys
from typing import Any

from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add, unstorable

_IMPORTABLE = frozenset({"verl.protocol", "transfer_queue.metadata"})
"""Modules that a cassette may cause to be imported: those of the batches that our adapters store."""


def is_namedtuple(cls: type) -> bool:
    """Tell whether a class was made by ``namedtuple`` or ``typing.NamedTuple``."""
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and type(fields) is tuple


def is_dataclass(cls: type) -> bool:
    """Tell whether a class is a dataclass whose instances are nothing but their fields."""
    builtin = (dict, list, tuple, set, str, bytes, int, float)
    return (
        dataclasses.is_dataclass(cls)
        and not issubclass(cls, builtin)
        and not hasattr(cls, "__del__")
    )


def is_enum(cls: type) -> bool:
    """Tell whether a class is an enumeration."""
    return issubclass(cls, enum.Enum)


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


def _class_of(node: dict[str, Any], joiner: Joiner, belongs: Any) -> Any:
    name = node["class"]
    module_name = name.partition(":")[0]
    if module_name in _IMPORTABLE:
        importlib.import_module(module_name)
    cls = _find(name)
    if cls is None:
        raise joiner.not_imported(name)
    if not (isinstance(cls, type) and belongs(cls)):
        raise ValueError(f"{name} is not such a class")
    return cls


def _split_enum(value: enum.Enum, into: Splitter, path: str) -> dict[str, Any]:
    return {
        "class": _name_of(value, path),
        "name": value.name,
        "value": into.child(value.value, path, "value"),
    }


def _join_enum(node: dict[str, Any], joiner: Joiner) -> enum.Enum:
    cls = _class_of(node, joiner, is_enum)
    member: enum.Enum | None = cls.__members__.get(node["name"])
    if member is None and issubclass(cls, enum.Flag):  # a combination has no name of its own
        member = cls(joiner.value(node["value"]))
    if member is not None:
        return member
    raise ValueError(f"{node['class']} has no member {node['name']!r}")


def _split_namedtuple(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    fields = zip(value._fields, value, strict=True)
    items = [into.child(item, path, name) for name, item in fields]
    return {"class": _name_of(value, path), "fields": list(value._fields), "items": items}


def _join_namedtuple(node: dict[str, Any], joiner: Joiner) -> Any:
    cls = _class_of(node, joiner, is_namedtuple)
    if list(cls._fields) != node["fields"]:
        raise joiner.corrupt(f"{node['class']} has the fields {cls._fields}, not {node['fields']}")
    return tuple.__new__(cls, joiner.value(node["items"]))


def _split_dataclass(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    names = [item.name for item in dataclasses.fields(value) if hasattr(value, item.name)]
    extras = [name for name in getattr(value, "__dict__", ()) if name not in names]
    return {
        "class": _name_of(value, path),
        "fields": {name: into.child(getattr(value, name), path, name) for name in names},
        "extras": {name: into.child(value.__dict__[name], path, name) for name in extras},
    }


def _join_dataclass(node: dict[str, Any], joiner: Joiner) -> Any:
    cls = _class_of(node, joiner, is_dataclass)
    declared = {item.name for item in dataclasses.fields(cls)}
    if not declared.issuperset(node["fields"]):
        raise joiner.corrupt(
            f"{node['class']} has the fields {declared}, not {list(node['fields'])}"
        )
    value = object.__new__(cls)
    for name, item in node["fields"].items():
        object.__setattr__(value, name, joiner.value(item))
    for name, item in node["extras"].items():
        value.__dict__[name] = joiner.value(item)
    return value


add(Codec("enum", _split_enum, _join_enum), family=is_enum)
add(Codec("namedtuple", _split_namedtuple, _join_namedtuple), family=is_namedtuple)
add(Codec("dataclass", _split_dataclass, _join_dataclass), family=is_dataclass)
