"""Codecs for the types of Python's own library."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import pathlib
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add, unstorable

_FACTORIES = {"list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str}
"""What a ``defaultdict`` may call to make a missing value: harmless, and found by name."""


def _items_of(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    return {"items": into.children(value, path)}


def _items_to(make: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any], Joiner], Any]:
    return lambda node, joiner: make([joiner.value(item) for item in node["items"]])


def _text_of(value: Any, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"value": str(value)}


def _text_to(make: Callable[[str], Any]) -> Callable[[dict[str, Any], Joiner], Any]:
    return lambda node, _joiner: make(node["value"])


def _split_mapping(value: dict[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    return {
        "keys": [into.child(key, path, key) for key in value],
        "values": [into.child(item, path, key) for key, item in value.items()],
    }


def _pairs(node: dict[str, Any], joiner: Joiner) -> list[tuple[Any, Any]]:
    keys, values = joiner.value(node["keys"]), joiner.value(node["values"])
    return list(zip(keys, values, strict=True))


def _split_defaultdict(value: defaultdict[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    factory = value.default_factory
    name = None if factory is None else getattr(factory, "__name__", "")
    if name is not None and _FACTORIES.get(name) is not factory:
        raise unstorable(value, path, f"its default_factory {factory!r} can't be found by name")
    return {"factory": name, **_split_mapping(value, into, path)}


def _join_defaultdict(node: dict[str, Any], joiner: Joiner) -> defaultdict[Any, Any]:
    factory = None if node["factory"] is None else _FACTORIES[node["factory"]]
    return defaultdict(factory, _pairs(node, joiner))


def _split_deque(value: deque[Any], into: Splitter, path: str) -> dict[str, Any]:
    return {"maxlen": value.maxlen, **_items_of(value, into, path)}


def _join_deque(node: dict[str, Any], joiner: Joiner) -> deque[Any]:
    return deque(joiner.value(node["items"]), node["maxlen"])


def _split_int(value: int, _into: Splitter, _path: str) -> dict[str, Any]:
    size = value.bit_length() // 8 + 1
    return {"little_endian": value.to_bytes(size, "little", signed=True)}


def _join_int(node: dict[str, Any], _joiner: Joiner) -> int:
    return int.from_bytes(node["little_endian"], "little", signed=True)


def _split_range(value: range | slice, into: Splitter, path: str) -> dict[str, Any]:
    return _items_of((value.start, value.stop, value.step), into, path)


def _split_zone(zone: dt.tzinfo, path: str) -> dict[str, Any] | None:
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
        return {"name": zone.key}
    if type(zone) is dt.timezone:
        offset = zone.utcoffset(None)
        named = zone.tzname(None) != dt.timezone(offset).tzname(None)
        return {"offset": _delta_of(offset), "label": zone.tzname(None) if named else None}
    raise unstorable(zone, path, "only zoneinfo.ZoneInfo and datetime.timezone can be stored")


def _join_zone(zone: dict[str, Any] | None) -> dt.tzinfo | None:
    if zone is None:
        return None
    if "name" in zone:
        return zoneinfo.ZoneInfo(zone["name"])
    offset = dt.timedelta(*zone["offset"])
    return dt.timezone(offset) if zone["label"] is None else dt.timezone(offset, zone["label"])


def _split_moment(value: dt.datetime | dt.time, _into: Splitter, path: str) -> dict[str, Any]:
    zone = None if value.tzinfo is None else _split_zone(value.tzinfo, f"{path}/tzinfo")
    return {"iso": value.replace(tzinfo=None).isoformat(), "fold": value.fold, "zone": zone}


def _join_datetime(node: dict[str, Any], _joiner: Joiner) -> dt.datetime:
    moment = dt.datetime.fromisoformat(node["iso"])
    return moment.replace(tzinfo=_join_zone(node["zone"]), fold=node["fold"])


def _join_time(node: dict[str, Any], _joiner: Joiner) -> dt.time:
    moment = dt.time.fromisoformat(node["iso"])
    return moment.replace(tzinfo=_join_zone(node["zone"]), fold=node["fold"])


def _delta_of(value: dt.timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _split_path(value: pathlib.PurePath, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"class": type(value).__name__, "value": str(value)}


def _join_path(node: dict[str, Any], _joiner: Joiner) -> pathlib.PurePath:
    """Give a path of the class that was recorded, or its pure twin on another system."""
    cls = {"PosixPath": pathlib.PosixPath, "WindowsPath": pathlib.WindowsPath}.get(node["class"])
    if cls is not None and isinstance(pathlib.Path(), cls):
        return cls(node["value"])
    windows = "Windows" in node["class"]
    return (pathlib.PureWindowsPath if windows else pathlib.PurePosixPath)(node["value"])


add(Codec("int", _split_int, _join_int), int)
add(
    Codec("complex", lambda v, *_: {"parts": [v.real, v.imag]}, lambda n, _: complex(*n["parts"])),
    complex,
)
add(
    Codec("bytearray", lambda v, *_: {"data": bytes(v)}, lambda n, _: bytearray(n["data"])),
    bytearray,
)
add(Codec("ellipsis", lambda *_: {}, lambda *_: ...), type(...))
add(Codec("tuple", _items_of, _items_to(tuple)), tuple)
add(Codec("set", _items_of, _items_to(set)), set)
add(Codec("frozenset", _items_of, _items_to(frozenset)), frozenset)
add(Codec("dict", _split_mapping, lambda n, j: dict(_pairs(n, j))), dict)
add(Codec("OrderedDict", _split_mapping, lambda n, j: OrderedDict(_pairs(n, j))), OrderedDict)
add(Codec("defaultdict", _split_defaultdict, _join_defaultdict), defaultdict)
add(Codec("deque", _split_deque, _join_deque), deque)
add(Codec("range", _split_range, _items_to(lambda items: range(*items))), range)
add(Codec("slice", _split_range, _items_to(lambda items: slice(*items))), slice)
add(Codec("datetime", _split_moment, _join_datetime), dt.datetime)
add(Codec("time", _split_moment, _join_time), dt.time)
add(Codec("date", lambda v, *_: {"value": v.isoformat()}, _text_to(dt.date.fromisoformat)), dt.date)
add(
    Codec(
        "timedelta", lambda v, *_: {"parts": _delta_of(v)}, lambda n, _: dt.timedelta(*n["parts"])
    ),
    dt.timedelta,
)
add(
    Codec(
        "timezone", lambda v, _, p: {"zone": _split_zone(v, p)}, lambda n, _: _join_zone(n["zone"])
    )
)
add(Codec("uuid", _text_of, _text_to(uuid.UUID)), uuid.UUID)
add(Codec("decimal", _text_of, _text_to(decimal.Decimal)), decimal.Decimal)
add(
    Codec(
        "fraction",
        lambda v, i, p: _items_of((v.numerator, v.denominator), i, p),
        _items_to(lambda items: fractions.Fraction(*items)),
    ),
    fractions.Fraction,
)
add(
    Codec("path", _split_path, _join_path),
    pathlib.PosixPath,
    pathlib.WindowsPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)
