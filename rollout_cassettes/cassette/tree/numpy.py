"""Codecs for numpy's arrays, scalars and dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter, unstorable

PLAIN_DTYPES = frozenset("?bBhHiIlLqQefd")
"""The ``dtype.char`` of the dtypes that safetensors stores as they are."""

_MOST_EMPTY_ITEMS = 2**31
"""How large an array of items that take no memory may be, such as zero-width strings."""

# ---- dtypes


def _is_plain(dtype: np.dtype[Any]) -> bool:
    # By equality: an unpickled dtype is a copy, which numpy doesn't count among its builtins.
    return dtype.char in PLAIN_DTYPES and dtype == np.dtype(dtype.char)


def _describe(dtype: np.dtype[Any], value: object, path: str) -> Any:
    """Return a dtype as numpy's own file format writes it: a string, or a list of fields.

    Like numpy, leave out ``dtype.metadata``, which no comparison looks at.
    """
    if dtype.hasobject:
        raise unstorable(value, path, f"its dtype {dtype} refers to Python objects")
    described = np.lib.format.dtype_to_descr(np.lib.format.drop_metadata(dtype))
    rebuilt = np.lib.format.descr_to_dtype(described)
    if rebuilt != dtype or rebuilt.type is not dtype.type:
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


def _split_dtype(value: np.dtype[Any], _into: Splitter, path: str) -> dict[str, Any]:
    return {"dtype": "|O" if value == np.dtype(object) else _describe(value, value, path)}


def _join_dtype(node: dict[str, Any], _joiner: Joiner) -> np.dtype[Any]:
    return np.dtype(object) if node["dtype"] == "|O" else _dtype_from(node["dtype"])


# ---- arrays


def _split_array(value: np.ndarray[Any, Any], into: Splitter, path: str) -> dict[str, Any]:
    if value.dtype == np.dtype(object):
        return {"shape": list(value.shape), "objects": into.children(value.ravel(), path)}
    value = np.ascontiguousarray(value).reshape(value.shape)
    if _is_plain(value.dtype):
        return {"key": _store(value, value, into, path)}
    described = _describe(value.dtype, value, path)
    data = np.frombuffer(bytearray(value.tobytes()), np.uint8)
    return {
        "key": _store(value, data, into, path),
        "dtype": described,
        "shape": list(value.shape),
    }


def _store(
    value: np.ndarray[Any, Any], data: np.ndarray[Any, Any], into: Splitter, path: str
) -> str:
    """Store the data of a contiguous array: once for all arrays that are the same memory."""
    import torch  # noqa: PLC0415 - what is written goes through torch; what is read need not

    place = (value.ctypes.data, value.dtype.str, value.shape)
    identity = ("numpy", *place) if value.nbytes else object()
    owned = data if data.flags.writeable else data.copy()
    return into.store(path, identity, value, torch.from_numpy(owned))


def _join_array(node: dict[str, Any], joiner: Joiner) -> np.ndarray[Any, Any]:
    if "objects" in node:
        return _join_objects(node, joiner)
    raw = joiner.tensors[node["key"]]
    if "dtype" not in node:
        return raw.numpy()
    dtype, shape = _dtype_from(node["dtype"]), tuple(node["shape"])
    if dtype.itemsize:
        return np.require(np.frombuffer(raw.data, dtype), requirements="A").reshape(shape)
    if math.prod(shape) > _MOST_EMPTY_ITEMS:
        raise ValueError(f"the shape {shape} is too large")
    empty: np.ndarray[Any, Any] = np.ndarray(shape, dtype)  # zeros() would widen the items
    return empty


def _join_objects(node: dict[str, Any], joiner: Joiner) -> np.ndarray[Any, Any]:
    items = joiner.value(node["objects"])
    flat: np.ndarray[Any, Any] = np.empty(len(items), dtype=object)
    for number, item in enumerate(items):  # numpy would take a list of lists for more dimensions
        flat[number] = item
    return flat.reshape(tuple(node["shape"]))


# ---- scalars


def _split_scalar(value: np.generic, _into: Splitter, path: str) -> dict[str, Any]:
    data = value.tobytes()[: value.dtype.itemsize]  # numpy gives a byte for a string of none
    return {"dtype": _describe(value.dtype, value, path), "data": data}


def _join_scalar(node: dict[str, Any], _joiner: Joiner) -> np.generic:
    dtype, data = _dtype_from(node["dtype"]), node["data"]
    if len(data) != dtype.itemsize:
        raise ValueError(f"{len(data)} bytes for a scalar of dtype {dtype}")
    if dtype.kind == "U":  # an array would take trailing zeros for padding
        scalar: np.generic = np.str_(data.decode("utf-32-le", "surrogatepass"))
    elif dtype.kind == "S":
        scalar = np.bytes_(data)
    else:
        scalar = np.ndarray((), dtype, bytearray(data))[()]
    return scalar


add(Codec("numpy.array", _split_array, _join_array), np.ndarray, np.memmap)
add(
    Codec("numpy.scalar", _split_scalar, _join_scalar),
    family=lambda cls: issubclass(cls, np.generic),
)
add(Codec("numpy.dtype", _split_dtype, _join_dtype), family=lambda cls: issubclass(cls, np.dtype))
