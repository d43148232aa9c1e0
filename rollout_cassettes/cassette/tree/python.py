"""Codecs for the types of Python's own library."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import pathlib
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import msgpack

from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter, unstorable

Join = Callable[[dict[str, Any], Joiner], Any]

# ---- numbers and bytes


def _split_int(value: int, _into: Splitter, _path: str) -> dict[str, Any]:
    """Store an integer of more than 64 bits."""
    size = value.bit_length() // 8 + 1
    return {"little_endian": value.to_bytes(size, "little", signed=True)}


def _join_int(node: dict[str, Any], _joiner: Joiner) -> int:
    return int.from_bytes(node["little_endian"], "little", signed=True)


def _split_complex(value: complex, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"parts": [value.real, value.imag]}


def _split_fraction(value: fractions.Fraction, into: Splitter, path: str) -> dict[str, Any]:
    return _split_items((value.numerator, value.denominator), into, path)


def _split_bytearray(value: bytearray, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"data": bytes(value)}


def _split_text(value: Any, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"value": str(value)}


def _from_text(make: Callable[[str], Any]) -> Join:
    return lambda node, _joiner: make(node["value"])


add(Codec("int", _split_int, _join_int), int)
add(Codec("complex", _split_complex, lambda node, _: complex(*node["parts"])), complex)
add(Codec("decimal", _split_text, _from_text(decimal.Decimal)), decimal.Decimal)
add(Codec("bytearray", _split_bytearray, lambda node, _: bytearray(node["data"])), bytearray)
add(Codec("uuid", _split_text, _from_text(uuid.UUID)), uuid.UUID)
add(Codec("ellipsis", lambda *_: {}, lambda *_: ...), type(...))

# ---- sequences and sets


def _split_items(value: Iterable[Any], into: Splitter, path: str) -> dict[str, Any]:
    return {"items": into.children(value, path)}


def _from_items(make: Callable[[list[Any]], Any]) -> Join:
    return lambda node, joiner: make([joiner.value(item) for item in node["items"]])


def _split_set(value: Iterable[Any], into: Splitter, path: str) -> dict[str, Any]:
    """Take a set apart, in an order that is the same in every process."""
    items = into.children(value, path)
    return {"items": sorted(items, key=partial(msgpack.packb, unicode_errors="surrogatepass"))}


def _split_deque(value: deque[Any], into: Splitter, path: str) -> dict[str, Any]:
    return {"maxlen": value.maxlen, **_split_items(value, into, path)}


def _join_deque(node: dict[str, Any], joiner: Joiner) -> deque[Any]:
    return deque(joiner.value(node["items"]), node["maxlen"])


def _split_range(value: range | slice, into: Splitter, path: str) -> dict[str, Any]:
    return _split_items((value.start, value.stop, value.step), into, path)


add(Codec("tuple", _split_items, _from_items(tuple)), tuple)
add(Codec("set", _split_set, _from_items(set)), set)
add(Codec("frozenset", _split_set, _from_items(frozenset)), frozenset)
add(Codec("deque", _split_deque, _join_deque), deque)
add(Codec("range", _split_range, _from_items(lambda items: range(*items))), range)
add(Codec("slice", _split_range, _from_items(lambda items: slice(*items))), slice)
add(
    Codec("fraction", _split_fraction, _from_items(lambda items: fractions.Fraction(*items))),
    fractions.Fraction,
)

# ---- mappings whose keys are no strings, or which are no plain dicts

_FACTORIES = {"list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str}
"""What a ``defaultdict`` may call to make a missing value: harmless, and found by name."""


def _split_mapping(value: dict[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    """Take a mapping apart; a key that is no string has its position for a path."""
    parts = [key if type(key) is str else number for number, key in enumerate(value)]
    return {
        "keys": [into.child(key, path, part) for key, part in zip(value, parts, strict=True)],
        "values": [
            into.child(item, path, part)
            for item, part in zip(value.values(), parts, strict=True)
        ],
    }  # fmt: skip


def _pairs(node: dict[str, Any], joiner: Joiner) -> list[tuple[Any, Any]]:
    keys, values = joiner.value(node["keys"]), joiner.value(node["values"])
    return list(zip(keys, values, strict=True))


def _split_defaultdict(value: defaultdict[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    factory = value.default_factory
    names = [name for name, known in _FACTORIES.items() if known is factory]
    if factory is not None and not names:
        raise unstorable(value, path, f"its default_factory {factory!r} can't be found by name")
    return {"factory": names[0] if names else None, **_split_mapping(value, into, path)}


def _join_defaultdict(node: dict[str, Any], joiner: Joiner) -> defaultdict[Any, Any]:
    factory = None if node["factory"] is None else _FACTORIES[node["factory"]]
    return defaultdict(factory, _pairs(node, joiner))


add(Codec("dict", _split_mapping, lambda node, joiner: dict(_pairs(node, joiner))), dict)
add(
    Codec("OrderedDict", _split_mapping, lambda node, joiner: OrderedDict(_pairs(node, joiner))),
    OrderedDict,
)
add(Codec("defaultdict", _split_defaultdict, _join_defaultdict), defaultdict)

# ---- dates and times


def _split_moment(value: dt.datetime | dt.time, _into: Splitter, path: str) -> dict[str, Any]:
    zone = None if value.tzinfo is None else _zone_of(value.tzinfo, path)
    return {"iso": value.replace(tzinfo=None).isoformat(), "fold": value.fold, "zone": zone}


def _join_moment(make: Callable[[str], Any]) -> Join:
    def join_moment(node: dict[str, Any], joiner: Joiner) -> Any:
        zone = None if node["zone"] is None else _zone_from(node["zone"], joiner)
        return make(node["iso"]).replace(tzinfo=zone, fold=node["fold"])

    return join_moment


def _split_date(value: dt.date, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"value": value.isoformat()}


def _delta_of(value: dt.timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _zone_of(zone: dt.tzinfo, path: str) -> dict[str, Any]:
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
        return {"name": zone.key}
    if type(zone) is dt.timezone:
        _, (offset, *label) = cast("tuple[Any, ...]", zone.__reduce__())[:2]
        return {"offset": _delta_of(offset), "label": label[0] if label else None}
    raise unstorable(zone, path, "only zoneinfo.ZoneInfo and datetime.timezone can be stored")


def _zone_from(zone: dict[str, Any], joiner: Joiner) -> dt.tzinfo:
    if "name" in zone:
        return _named_zone(zone["name"], joiner)
    offset = dt.timedelta(*zone["offset"])
    return dt.timezone(offset) if zone["label"] is None else dt.timezone(offset, zone["label"])


def _named_zone(name: str, joiner: Joiner) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        fix = "Install the time zones: pip install tzdata"
        raise joiner.unavailable(f"time zone {name}", "it is not known here", fix) from error


add(Codec("datetime", _split_moment, _join_moment(dt.datetime.fromisoformat)), dt.datetime)
add(Codec("time", _split_moment, _join_moment(dt.time.fromisoformat)), dt.time)
add(Codec("date", _split_date, _from_text(dt.date.fromisoformat)), dt.date)
add(
    Codec(
        "timedelta",
        lambda value, *_: {"parts": _delta_of(value)},
        lambda node, _: dt.timedelta(*node["parts"]),
    ),
    dt.timedelta,
)
add(
    Codec(
        "timezone",
        lambda value, _, path: {"zone": _zone_of(value, path)},
        lambda node, joiner: _zone_from(node["zone"], joiner),
    ),
    dt.timezone,
    zoneinfo.ZoneInfo,
)

# ---- paths

_PATHS = {
    cls.__name__: cls
    for cls in (
        pathlib.PosixPath,
        pathlib.WindowsPath,
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
    )
}


def _split_path(value: pathlib.PurePath, _into: Splitter, _path: str) -> dict[str, Any]:
    return {"class": type(value).__name__, "value": str(value)}


def _join_path(node: dict[str, Any], _joiner: Joiner) -> pathlib.PurePath:
    """Give a path of the class that was recorded, or its pure twin on another system."""
    cls = _PATHS[node["class"]]
    if issubclass(cls, pathlib.Path) and not isinstance(pathlib.Path(), cls):
        cls = _PATHS[f"Pure{node['class']}"]
    path: pathlib.PurePath = cls(node["value"])
    return path


add(Codec("path", _split_path, _join_path), *_PATHS.values())
