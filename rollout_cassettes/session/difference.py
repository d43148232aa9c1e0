"""Where two values first differ, told so that a person sees it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.tree import Split, split
from rollout_cassettes.display.arrays import array_type
from rollout_cassettes.errors import shorten

if TYPE_CHECKING:
    import torch

_CONTEXT = 40
"""How many characters are shown on either side of the first that differs."""

_ABSENT = object()
_KIND = "$"
_INSIDE = ("items", "fields", "data")
"""Entries of a node that stand for the value itself, and are left out of a path."""


@dataclass(frozen=True)
class Difference:
    """Where two values differ first.

    Attributes:
        path: The way to it, as it is written in Python: ``"['batch']['input_ids']"``.
        left: What stands there in one of them, as text.
        right: What stands there in the other.
        index: Which item of a tensor it is; None where it is no tensor, or two of different types.
        character: Which character of a long text it is; None for all else.
        tensor_type: The tensor's type, such as ``"i64[8,128]"``; empty where it is no tensor.
    """

    path: str
    left: str
    right: str
    index: list[int] | None = None
    character: int | None = None
    tensor_type: str = ""


def describe(recorded: Any, live: Any) -> str:
    """Say where two values differ first, and what stands there in each.

    Values are compared as they are stored: containers part by part, tensors item by item.
    """
    found = first_difference(recorded, live)
    if found is None:
        return f"was {shorten(recorded)}, and is now {shorten(live)}"
    told = f"was {found.left}, and is now {found.right}"
    if found.index is not None:
        told = f"differs at {found.index}: {told}, in {found.tensor_type}"
    elif found.character is not None:
        told = f"differs from character {found.character} on: {told}"
    return f"{found.path} {told}".lstrip()


def first_difference(left: Any, right: Any) -> Difference | None:
    """Return where two values differ first; None where they are stored alike."""
    parts, others = split(left, portable=True), split(right, portable=True)
    for path, leaf, other in _leaves(parts.skeleton, others.skeleton, ""):
        found = _between(leaf, other, parts, others)
        if found is not None:
            return replace(found, path=path)
    return None


def tensor_type(tensor: torch.Tensor) -> str:
    """Write a tensor's dtype and shape: ``f32[2,3]``."""
    return array_type(str(tensor.dtype).removeprefix("torch."), tensor.shape)


def tensor_types(value: Any) -> dict[str, str]:
    """Return the types of the tensors in a value, by their paths."""
    parts = split(value, portable=True)
    leaves = [(path, leaf) for path, leaf, _ in _leaves(parts.skeleton, parts.skeleton, "")]
    return {path: _shape(leaf, parts) for path, leaf in leaves if _is_leaf(leaf)}


def _leaves(left: Any, right: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Go through two skeletons side by side, down to what is no container in both."""
    if isinstance(left, list) and isinstance(right, list):
        pairs = itertools.zip_longest(left, right, fillvalue=_ABSENT)
        for number, (item, other) in enumerate(pairs):
            yield from _leaves(item, other, f"{path}[{number}]")
    elif isinstance(left, dict) and isinstance(right, dict) and not _is_leaf(left):
        for name in [*left, *(name for name in right if name not in left)]:
            part = path if _KIND in left and name in _INSIDE else f"{path}[{name!r}]"
            yield from _leaves(left.get(name, _ABSENT), right.get(name, _ABSENT), part)
    else:
        yield path, left, right


def _between(left: Any, right: Any, parts: Split, others: Split) -> Difference | None:
    """Return how two leaves differ; None where they don't."""
    if isinstance(left, str) and isinstance(right, str):
        return _between_texts(left, right)
    if _is_tensor(left) and _is_tensor(right) and left[_KIND] == right[_KIND]:
        return _between_tensors(parts.tensors[left["key"]], others.tensors[right["key"]])
    if _is_jagged(left) and _is_jagged(right):
        return _between_jagged(left, right, parts, others)
    if type(left) is type(right) and repr(left) == repr(right):
        return None
    return Difference("", _shown(left, parts), _shown(right, others))


def _between_texts(left: str, right: str) -> Difference | None:
    if left == right:
        return None
    if max(len(left), len(right)) <= 2 * _CONTEXT:
        return Difference("", repr(left), repr(right))
    pairs = enumerate(itertools.zip_longest(left, right))
    place = next(number for number, (one, other) in pairs if one != other)
    return Difference("", _around(left, place), _around(right, place), character=place)


def _around(text: str, place: int) -> str:
    start, end = max(0, place - _CONTEXT), place + _CONTEXT
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return repr(before + text[start:end] + after)


def _between_tensors(left: torch.Tensor, right: torch.Tensor) -> Difference | None:
    import torch  # noqa: PLC0415 - only where a request holds tensors

    if left.dtype != right.dtype or left.shape != right.shape:
        return Difference("", tensor_type(left), tensor_type(right))
    unequal = left.flatten().view(torch.uint8) != right.flatten().view(torch.uint8)
    if not unequal.any():
        return None
    item = int(unequal.nonzero()[0]) // left.element_size()
    index = [int(part) for part in torch.unravel_index(torch.tensor(item), left.shape)]
    was, now = left.flatten()[item].item(), right.flatten()[item].item()
    return Difference("", repr(was), repr(now), index, tensor_type=tensor_type(left))


def _between_jagged(left: Any, right: Any, parts: Split, others: Split) -> Difference | None:
    """Return the first row that differs of two tensors whose rows have lengths of their own."""
    rows, other_rows = _rows(left, parts), _rows(right, others)
    if len(rows) != len(other_rows):
        return Difference("", _shown(left, parts), _shown(right, others))
    for number, (row, other) in enumerate(zip(rows, other_rows, strict=True)):
        found = _between_tensors(row, other)
        if found is not None:
            if found.index is None:
                return replace(
                    found,
                    left=f"{found.left} in row {number}",
                    right=f"{found.right} in row {number}",
                )
            return replace(found, index=[number, *found.index], tensor_type=_shape(left, parts))
    return None


def _rows(jagged: Any, parts: Split) -> list[torch.Tensor]:
    layout = jagged["jagged"]
    values, offsets = (parts.tensors[layout[name]["key"]] for name in ("values", "offsets"))
    ends = offsets.tolist()
    return [values[start:end] for start, end in itertools.pairwise(ends)]


def _shown(leaf: Any, parts: Split) -> str:
    if leaf is _ABSENT:
        return "absent"
    if not isinstance(leaf, dict) or _KIND not in leaf:
        return shorten(leaf)
    if _is_leaf(leaf):
        return f"a {leaf[_KIND]} {_shape(leaf, parts)}"
    return f"a {leaf[_KIND]}"


def _shape(leaf: Any, parts: Split) -> str:
    """Write the type of a stored tensor; ``*`` stands for lengths that differ between rows."""
    if _is_tensor(leaf):
        return tensor_type(parts.tensors[leaf["key"]])
    values = parts.tensors[leaf["jagged"]["values"]["key"]]
    count = len(parts.tensors[leaf["jagged"]["offsets"]["key"]]) - 1
    dtype, _, shape = tensor_type(values).partition("[")
    return f"{dtype}[{','.join([str(count), '*', *shape[:-1].split(',')[1:]])}]"


def _is_leaf(leaf: Any) -> bool:
    return _is_tensor(leaf) or _is_jagged(leaf)


def _is_tensor(leaf: Any) -> bool:
    """Tell whether a leaf is a node whose data is a stored tensor."""
    return isinstance(leaf, dict) and _KIND in leaf and "key" in leaf


def _is_jagged(leaf: Any) -> bool:
    """Tell whether a leaf is a node of a tensor whose rows stand one behind the other."""
    if not isinstance(leaf, dict) or _KIND not in leaf or "jagged" not in leaf:
        return False
    layout = leaf["jagged"]
    return layout["lengths"] is None and layout["ragged_dim"] == 1
