"""Codecs for numpy's arrays, scalars and dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add, unstorable

PLAIN_DTYPES = frozenset("?bBhHiIlLqQefd")
"""The ``dtype.char`` of the dtypes that safetensors stores as they are."""


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.char in PLAIN_DTYPES and dtype.isnative


def _describe(dtype: np.dtype[Any], value: object, path: str) -> Any:
    """Return a dtype as numpy's own file format writes it: a string, or a list of fields."""
    described = np.lib.format.dtype_to_descr(dtype)
    known = not dtype.hasobject and np.lib.format.descr_to_dtype(described) == dtype
    if not known:
        raise unstorable(value, path, f"numpy can't rebuild its dtype {dtype}")
    return _listed(described)


def _listed(described: Any) -> Any:
    if isinstance(described, (list, tuple)):
        return [_listed(item) for item in described]
    return described


def _dtype_from(described: Any) -> np.dtype[Any]:
    dtype = np.lib.format.descr_to_dtype(_fields_from(described))
    if dtype.hasobject:
        raise ValueError("a stored dtype can't hold objects")
    return dtype


def _fields_from(described: Any) -> Any:
    if isinstance(described, str):
        return described
    return [
        (tuple(name) if isinstance(name, list) else name, _fields_from(kind), *map(tuple, shape))
        for name, kind, *shape in described
    ]


def _split_array(value: np.ndarray[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - what is written goes through torch; what is read need not

    if value.dtype.hasobject:
        if value.dtype.kind != "O":
            raise unstorable(value, path, "it is a structured array with objects in it")
        return {"shape": list(value.shape), "objects": into.children(value.ravel(), path)}
    value = np.ascontiguousarray(value).reshape(value.shape)
    identity: object = object()
    if value.nbytes:
        place = value.__array_interface__["data"][0]
        identity = ("numpy", place, value.dtype.str, value.shape)
    if _is_plain(value.dtype):
        owned = value if value.flags.writeable else value.copy()
        return {"key": into.store(path, identity, value, torch.from_numpy(owned))}
    data = torch.frombuffer(bytearray(value.tobytes()) or bytearray(1), dtype=torch.uint8)
    key = into.store(path, identity, value, data[: value.nbytes])
    return {
        "key": key,
        "dtype": _describe(value.dtype, value, path),
        "shape": list(value.shape),
    }


def _join_array(node: dict[str, Any], joiner: Joiner) -> np.ndarray[Any, Any]:
    if "objects" in node:
        return _join_objects(node, joiner)
    raw = joiner.raw(node["key"])
    if "dtype" not in node:
        return raw.numpy()
    dtype, shape = _dtype_from(node["dtype"]), tuple(node["shape"])
    if dtype.itemsize == 0:
        return np.zeros(_checked(shape), dtype)
    return np.frombuffer(raw.data, dtype).reshape(shape)


def _join_objects(node: dict[str, Any], joiner: Joiner) -> np.ndarray[Any, Any]:
    items, shape = node["objects"], tuple(node["shape"])
    if math.prod(shape) != len(items):
        raise ValueError(f"an object array of shape {shape} can't hold {len(items)} objects")
    flat = np.empty(len(items), dtype=object)
    for number, item in enumerate(items):
        flat[number] = joiner.value(item)
    return flat.reshape(shape)


def _checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse absurd shapes of items that take no memory, such as zero-width strings."""
    if math.prod(shape) > 2**31:
        raise ValueError(f"the shape {shape} is too large")
    return shape


def _split_scalar(value: np.generic, _into: Splitter, path: str) -> dict[str, Any]:
    return {"dtype": _describe(value.dtype, value, path), "data": value.tobytes()}


def _join_scalar(node: dict[str, Any], _joiner: Joiner) -> np.generic:
    dtype = _dtype_from(node["dtype"])
    scalar: np.generic = np.frombuffer(node["data"], dtype)[0] if dtype.itemsize else dtype.type()
    return scalar


def _split_dtype(value: np.dtype[Any], _into: Splitter, path: str) -> dict[str, Any]:
    return {"dtype": "|O" if value.kind == "O" else _describe(value, value, path)}


def _join_dtype(node: dict[str, Any], _joiner: Joiner) -> np.dtype[Any]:
    return np.dtype(object) if node["dtype"] == "|O" else _dtype_from(node["dtype"])


add(Codec("numpy.array", _split_array, _join_array), np.ndarray, np.memmap)
add(
    Codec("numpy.scalar", _split_scalar, _join_scalar),
    family=lambda cls: issubclass(cls, np.generic),
)
add(Codec("numpy.dtype", _split_dtype, _join_dtype), family=lambda cls: issubclass(cls, np.dtype))
