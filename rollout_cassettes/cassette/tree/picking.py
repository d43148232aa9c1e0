"""Taking rows out of a tree that is taken apart, without putting it together.

So it needs neither torch nor the classes of what was recorded, and what is not touched stays as it
is, to the bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.safetensors_file import RawTensor
from rollout_cassettes.cassette.tree.codec import KIND
from rollout_cassettes.cassette.tree.plain import plain

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Node = Any
"""The skeleton of a value."""

_HAVE_TENSORS = frozenset({"torch.tensor", "numpy.array", "PIL.image"})
"""The kinds of nodes whose ``key`` names a tensor."""

_UNNAMED = "\0"
"""How the names of picked tensors begin, until they have their final ones."""


class Picker:
    """Picks rows from the trees of one interaction.

    What stands in two places is picked once, as it was stored once.

    Args:
        tensors: The tensors of the interaction, by name.
        source: The file that the trees come from, for messages.
    """

    def __init__(self, tensors: Mapping[str, RawTensor], source: Path) -> None:
        self._tensors = tensors
        self._source = source
        self._names: dict[object, str] = {}
        self._picked: dict[str, tuple[str, RawTensor]] = {}

    def plain(self, node: Node) -> Any:
        """Return the value that a node stands for, as plain containers and numpy arrays."""
        return plain(node, self._tensors, source=self._source)

    def length(self, node: Node) -> int | None:
        """Return how many rows a node has; None if it can't have any."""
        if isinstance(node, list):
            return len(node)
        known = _KINDS.get(node.get(KIND)) if isinstance(node, dict) else None
        return None if known is None else known[0](self, node)

    def rows(self, node: Node, rows: Sequence[int]) -> Node:
        """Return these rows of a node.

        Raises:
            ValueError: If it has no rows.
        """
        if isinstance(node, list):
            return [node[row] for row in rows]
        if self.length(node) is None:
            raise ValueError("it has no rows")
        return {**node, **_KINDS[node[KIND]][1](self, node, tuple(rows))}

    def settled(self, skeletons: Node) -> tuple[Node, dict[str, RawTensor]]:
        """Return trees with final names for their tensors, and these tensors.

        What was picked is called what it was picked from, where that name is free.
        """
        used = set(_keys_in(skeletons))
        tensors = {key: self._tensors[key] for key in used if not key.startswith(_UNNAMED)}
        final: dict[str, str] = {}
        for name, (origin, raw) in self._picked.items():
            if name in used:
                names = itertools.chain([origin], (f"{origin}#{n}" for n in itertools.count(2)))
                final[name] = next(free for free in names if free not in tensors)
                tensors[final[name]] = raw
        return _renamed(skeletons, final), tensors

    # ---- tensors

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the shape of a stored tensor or array."""
        if "shape" in node:
            return tuple(node["shape"])
        return self._tensors[node["key"]].shape

    def stored(self, node: Node, how: object, make: Callable[[Array], Array]) -> dict[str, Any]:
        """Return what a node says of a tensor that is made from its own.

        Args:
            node: The node.
            how: Equal for what is made in the same way.
            make: Makes it. It is given, and gives, the bytes of its items: ``[*shape, item size]``.
        """
        import numpy as np  # noqa: PLC0415 - opening a cassette needs no numpy

        raw, shape = self._tensors[node["key"]], self.shape(node)
        size = raw.data.nbytes // (math.prod(shape) or 1)
        made = make(np.frombuffer(raw.data, "u1").reshape(*shape, size))
        name = self._names.setdefault((node["key"], how), f"{_UNNAMED}{len(self._names)}")
        if name not in self._picked:
            kept = (made.size,) if "shape" in node else made.shape[:-1]
            picked = RawTensor(raw.dtype, kept, memoryview(bytearray(made.tobytes())))
            self._picked[name] = node["key"], picked
        return {"key": name} | ({"shape": list(made.shape[:-1])} if "shape" in node else {})


def _keys_in(node: Node) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get(KIND) in _HAVE_TENSORS and "key" in node:
            yield node["key"]
        for item in node.values():
            yield from _keys_in(item)
    elif isinstance(node, list):
        for item in node:
            yield from _keys_in(item)


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, dict):
        renamed = {name: _renamed(item, names) for name, item in node.items()}
        if node.get(KIND) in _HAVE_TENSORS and node.get("key") in names:
            renamed["key"] = names[node["key"]]
        return renamed
    return [_renamed(item, names) for item in node] if isinstance(node, list) else node


# ---- how many rows


def _first(shape: Sequence[int]) -> int | None:
    return shape[0] if shape else None


def _length_of_tensor(picker: Picker, node: Node) -> int | None:
    if "jagged" in node:
        return int(picker.shape(node["jagged"]["offsets"])[0]) - 1
    if "nested" in node:
        return len(node["nested"]["shapes"])
    return _first(picker.shape(node))


def _length_of_array(picker: Picker, node: Node) -> int | None:
    return _first(picker.shape(node))


def _length_of_batch(_picker: Picker, node: Node) -> int | None:
    return _first(node["batch_size"])


def _length_of_items(picker: Picker, node: Node) -> int | None:
    if "data" in node:
        return len(node["data"])
    if node.get("stack_dim", 0) == 0:
        return len(node["items"])
    return picker.length(node["items"][0]) if node["items"] else None


# ---- picking them


def _rows_of_tensor(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    if "jagged" in node:
        return {"jagged": _rows_of_jagged(picker, node["jagged"], rows)}
    if "nested" in node:
        return {"nested": _rows_of_nested(picker, node["nested"], rows)}
    return picker.stored(node, rows, lambda items: items[list(rows)])


def _rows_of_jagged(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    """Pick rows of a jagged tensor; they lie one after the other then, without holes."""
    import numpy as np  # noqa: PLC0415

    offsets, lengths = picker.plain(node["offsets"]), node["lengths"]
    sizes = np.diff(offsets) if lengths is None else picker.plain(lengths)
    axis = node["ragged_dim"] - 1
    places = [np.arange(offsets[row], offsets[row] + sizes[row]) for row in rows]
    chosen = np.concatenate([np.arange(0), *places]).astype("i8")
    ends = np.cumsum([0, *(sizes[row] for row in rows)]).astype(offsets.dtype)
    how = ("jagged", node["offsets"]["key"], None if lengths is None else lengths["key"], rows)
    return {
        "values": {
            **node["values"],
            **picker.stored(node["values"], (how, axis), lambda items: items.take(chosen, axis)),
        },
        "offsets": {
            **node["offsets"],
            **picker.stored(node["offsets"], how, lambda _: ends.view("u1").reshape(len(ends), -1)),
        },
        "lengths": None if lengths is None else picker.rows(lengths, rows),
        "ragged_dim": node["ragged_dim"],
    }


def _rows_of_nested(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415

    shapes = node["shapes"]
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)]).tolist()
    chosen = np.concatenate([np.arange(0), *(np.arange(ends[r], ends[r + 1]) for r in rows)])
    values = picker.stored(
        node["values"], ("nested", rows), lambda items: items.take(chosen.astype("i8"), 0)
    )
    return {"values": {**node["values"], **values}, "shapes": [shapes[row] for row in rows]}


def _rows_of_array(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    if "objects" not in node:
        return picker.stored(node, rows, lambda items: items[list(rows)])
    _, *rest = node["shape"]
    size = math.prod(rest)
    objects = [node["objects"][row * size : (row + 1) * size] for row in rows]
    return {"shape": [len(rows), *rest], "objects": [item for row in objects for item in row]}


def _rows_of_batch(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    fields = {name: picker.rows(field, rows) for name, field in node["fields"].items()}
    return {**_batch_size(node, rows), "fields": fields}


def _batch_size(node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    return {"batch_size": [len(rows), *node["batch_size"][1:]]}


def _rows_of_data(_picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    """Leave what belongs to the batch as a whole."""
    return _batch_size(node, rows)


def _rows_of_items(picker: Picker, node: Node, rows: tuple[int, ...]) -> dict[str, Any]:
    if "data" in node:
        return {"data": picker.rows(node["data"], rows)}
    if node.get("stack_dim", 0):
        return {"items": [picker.rows(item, rows) for item in node["items"]]}
    items = picker.rows(node["items"], rows)
    if items or "stack_dim" not in node:
        return {"items": items}
    inner = node["items"][0]["batch_size"] if node["items"] else node["batch_size"][1:]
    return {"items": [], "batch_size": [0, *inner]}


_Length = Callable[[Picker, Node], int | None]
_Rows = Callable[[Picker, Node, tuple[int, ...]], dict[str, Any]]

_KINDS: dict[Any, tuple[_Length, _Rows]] = {
    "torch.tensor": (_length_of_tensor, _rows_of_tensor),
    "numpy.array": (_length_of_array, _rows_of_array),
    "tensordict.TensorDict": (_length_of_batch, _rows_of_batch),
    "tensordict.NonTensorData": (_length_of_batch, _rows_of_data),
    "tensordict.LazyStackedTensorDict": (_length_of_items, _rows_of_items),
    "tensordict.NonTensorStack": (_length_of_items, _rows_of_items),
    "tensordict.LinkedList": (_length_of_items, _rows_of_items),
    "tuple": (_length_of_items, _rows_of_items),
    "deque": (_length_of_items, _rows_of_items),
}
"""What has rows, by its kind: how many there are, and how they are picked."""
