"""Reading a tree without the libraries whose values it holds: no torch, no framework.

Tensors come as numpy arrays, batches and objects as dicts, stacks as lists.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.tree.codec import KIND, Joiner

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
        if type(node) is dict and isinstance(node.get(KIND), str):
            read = _PLAIN.get(node[KIND])
            if read is not None:
                return read(node, self)
            if node[KIND].startswith("custom."):
                return self.value(node["data"])
        return super().value(node)


def _tensor(node: dict[str, Any], joiner: Joiner) -> Any:
    if "jagged" in node:
        return _rows(node["jagged"], joiner)
    if "nested" in node:
        return _nested_rows(node["nested"], joiner)
    array = joiner.raw(node["key"]).numpy()
    if "dtype" not in node:
        return array
    if node["dtype"] in ("complex64", "complex128"):
        return array.view(node["dtype"]).reshape(node["shape"])
    return array


def _rows(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    """Return the rows of a jagged tensor, as arrays."""
    import numpy as np  # noqa: PLC0415 - opening a cassette needs no numpy

    values, offsets = joiner.value(node["values"]), joiner.value(node["offsets"])
    lengths = np.diff(offsets) if node["lengths"] is None else joiner.value(node["lengths"])
    ragged = node["ragged_dim"] - 1
    moved = np.moveaxis(values, ragged, 0)
    pieces = zip(offsets[:-1], lengths, strict=True)
    return [np.moveaxis(moved[start : start + size], 0, ragged) for start, size in pieces]


def _nested_rows(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    values, shapes = joiner.value(node["values"]), node["shapes"]
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    starts = [0, *ends]
    return [
        values[start:end].reshape(shape)
        for start, end, shape in zip(starts, ends, shapes, strict=False)
    ]  # fmt: skip


def _name(node: dict[str, Any], _joiner: Joiner) -> Any:
    return node["name"]


def _fields(node: dict[str, Any], joiner: Joiner) -> dict[str, Any]:
    return {name: joiner.value(field) for name, field in node["fields"].items()}


def _items(node: dict[str, Any], joiner: Joiner) -> list[Any]:
    items = node["data"] if "data" in node else node["items"]
    return [joiner.value(item) for item in items]


def _record(node: dict[str, Any], joiner: Joiner) -> dict[str, Any]:
    return dict(zip(node["fields"], joiner.value(node["items"]), strict=True))


_PLAIN: dict[str, Callable[[dict[str, Any], Joiner], Any]] = {
    "torch.tensor": _tensor,
    "torch.dtype": _name,
    "torch.device": _name,
    "torch.layout": _name,
    "torch.size": lambda node, _joiner: tuple(node["sizes"]),
    "tensordict.TensorDict": _fields,
    "tensordict.LazyStackedTensorDict": _items,
    "tensordict.NonTensorData": lambda node, joiner: joiner.value(node["data"]),
    "tensordict.NonTensorStack": _items,
    "tensordict.LinkedList": _items,
    "PIL.image": lambda node, joiner: bytes(joiner.raw(node["key"]).data),
    "dataclass": _fields,
    "namedtuple": _record,
    "enum": _name,
}
