"""Reading a tree without the libraries whose values it holds: no torch, no framework.

Tensors come as numpy arrays, batches and objects as dicts, stacks as lists, images as the bytes of
PNG files. What can't be a key, or in a set, without its class makes a list of its mapping or set.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.tree.codec import CUSTOM, KIND
from rollout_cassettes.cassette.tree.joiner import Joiner

if TYPE_CHECKING:
    from rollout_cassettes.cassette.safetensors_file import RawTensor


def plain(skeleton: Any, tensors: Mapping[str, RawTensor], *, source: Path) -> Any:
    """Put a value together from plain containers and numpy arrays.

    Args:
        skeleton: What :func:`~rollout_cassettes.cassette.tree.split` returned.
        tensors: Tensor data by path.
        source: The file that the skeleton comes from, for messages.

    Raises:
        CassetteCorruptError: If the skeleton is not one that ``split`` makes.
    """
    joiner = PlainJoiner(tensors, source=source)
    with joiner.reporting_damage():
        return joiner.value(skeleton)


class PlainJoiner(Joiner):
    """A walk that gives plain values for the nodes of libraries and of users' classes."""

    def value(self, node: Any) -> Any:
        """Return the plain value that a skeleton stands for."""
        kind = node.get(KIND) if type(node) is dict else None
        if not isinstance(kind, str):
            return super().value(node)
        if kind.startswith(CUSTOM):
            return self.value(node["data"])
        if kind in _PLAIN:
            return _PLAIN[kind](node, self)
        return super().value(node)


# ---- tensors


def _tensor(node: dict[str, Any], joiner: Joiner) -> Any:
    if "jagged" in node:
        return _jagged_rows(node["jagged"], joiner)
    if "nested" in node:
        return _nested_rows(node["nested"], joiner)
    array = joiner.tensors[node["key"]].numpy()
    if node.get("dtype") in ("complex64", "complex128"):
        return array.view(node["dtype"]).reshape(node["shape"])
    return array


def _jagged_rows(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    """Return the rows of a jagged tensor, as arrays."""
    import numpy as np  # noqa: PLC0415 - opening a cassette needs no numpy

    values, offsets = joiner.value(node["values"]), joiner.value(node["offsets"])
    lengths = np.diff(offsets) if node["lengths"] is None else joiner.value(node["lengths"])
    ragged = node["ragged_dim"] - 1
    moved = np.moveaxis(values, ragged, 0)
    places = zip(offsets[:-1].tolist(), lengths.tolist(), strict=True)
    return [np.moveaxis(moved[start : start + size], 0, ragged) for start, size in places]


def _nested_rows(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    """Return the rows of a strided nested tensor, as arrays."""
    values, shapes = joiner.value(node["values"]), node["shapes"]
    ends = list(itertools.accumulate((math.prod(shape) for shape in shapes), initial=0))
    if ends[-1] != len(values):
        raise ValueError(f"rows of {ends[-1]} items in all, from {len(values)}")
    places = zip(itertools.pairwise(ends), shapes, strict=True)
    return [values[start:end].reshape(shape) for (start, end), shape in places]


# ---- objects and batches


def _name(node: dict[str, Any], _joiner: Joiner) -> Any:
    return node["name"]


def _data(node: dict[str, Any], joiner: Joiner) -> Any:
    return joiner.value(node["data"])


def _object(node: dict[str, Any], joiner: Joiner) -> dict[str, Any]:
    attributes = {**node["fields"], **node.get("extras", {})}
    return {name: joiner.value(item) for name, item in attributes.items()}


def _record(node: dict[str, Any], joiner: Joiner) -> dict[str, Any]:
    return dict(zip(node["fields"], joiner.value(node["items"]), strict=True))


def _items(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    items: list[Any] = joiner.value(node["data"] if "data" in node else node["items"])
    return items


def _image(node: dict[str, Any], joiner: Joiner) -> bytes:
    return bytes(joiner.tensors[node["key"]].data)


# ---- what is hashed


def _mapping(node: dict[str, Any], joiner: Joiner) -> Any:
    keys, values = joiner.value(node["keys"]), joiner.value(node["values"])
    pairs = list(zip(keys, values, strict=True))
    return dict(pairs) if all(map(_is_hashable, keys)) else pairs


def _set(node: dict[str, Any], joiner: Joiner) -> Any:
    items = joiner.value(node["items"])
    return set(items) if all(map(_is_hashable, items)) else items


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


_PLAIN: dict[str, Callable[[dict[str, Any], Joiner], Any]] = {
    "torch.tensor": _tensor,
    "torch.dtype": _name,
    "torch.device": _name,
    "torch.layout": _name,
    "torch.size": lambda node, _joiner: tuple(node["sizes"]),
    "tensordict.TensorDict": _object,
    "tensordict.LazyStackedTensorDict": _items,
    "tensordict.NonTensorData": _data,
    "tensordict.NonTensorStack": _items,
    "tensordict.LinkedList": _items,
    "PIL.image": _image,
    "dataclass": _object,
    "namedtuple": _record,
    "enum": _name,
    "dict": _mapping,
    "OrderedDict": _mapping,
    "defaultdict": _mapping,
    "set": _set,
    "frozenset": _set,
}
