"""Where two values first differ, told so that a person sees it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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


def describe(recorded: Any, live: Any) -> str:
    """Say where two values differ first, and what stands there in each.

    Values are compared as they are stored: containers part by part, tensors item by item.
    """
    was, now = split(recorded, portable=True), split(live, portable=True)
    for path, left, right in _leaves(was.skeleton, now.skeleton, ""):
        told = _told(left, right, was, now)
        if told is not None:
            return f"{path} {told}".lstrip()
    return f"was {shorten(recorded)}, and is now {shorten(live)}"


def tensor_type(tensor: torch.Tensor) -> str:
    """Write a tensor's dtype and shape: ``f32[2,3]``."""
    return array_type(str(tensor.dtype).removeprefix("torch."), tensor.shape)


def _leaves(left: Any, right: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Go through two skeletons side by side, down to what is no container in both."""
    if isinstance(left, list) and isinstance(right, list):
        pairs = itertools.zip_longest(left, right, fillvalue=_ABSENT)
        for number, (item, other) in enumerate(pairs):
            yield from _leaves(item, other, f"{path}[{number}]")
    elif isinstance(left, dict) and isinstance(right, dict) and not _is_tensor(left):
        for name in [*left, *(name for name in right if name not in left)]:
            part = path if _KIND in left and name in _INSIDE else f"{path}[{name!r}]"
            yield from _leaves(left.get(name, _ABSENT), right.get(name, _ABSENT), part)
    else:
        yield path, left, right


def _told(left: Any, right: Any, was: Split, now: Split) -> str | None:
    """Say how two leaves differ; None where they don't."""
    if isinstance(left, str) and isinstance(right, str):
        return _texts_told(left, right)
    if _is_tensor(left) and _is_tensor(right) and left[_KIND] == right[_KIND]:
        return _tensors_told(was.tensors[left["key"]], now.tensors[right["key"]])
    if type(left) is type(right) and repr(left) == repr(right):
        return None
    return f"was {_shown(left, was)}, and is now {_shown(right, now)}"


def _texts_told(left: str, right: str) -> str | None:
    if left == right:
        return None
    if max(len(left), len(right)) <= 2 * _CONTEXT:
        return f"was {left!r}, and is now {right!r}"
    pairs = enumerate(itertools.zip_longest(left, right))
    place = next(number for number, (one, other) in pairs if one != other)
    was, now = _around(left, place), _around(right, place)
    return f"differs from character {place} on: was {was}, and is now {now}"


def _around(text: str, place: int) -> str:
    start, end = max(0, place - _CONTEXT), place + _CONTEXT
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return repr(before + text[start:end] + after)


def _tensors_told(left: torch.Tensor, right: torch.Tensor) -> str | None:
    import torch  # noqa: PLC0415 - only where a request holds tensors

    if left.dtype != right.dtype or left.shape != right.shape:
        return f"was {tensor_type(left)}, and is now {tensor_type(right)}"
    unequal = left.flatten().view(torch.uint8) != right.flatten().view(torch.uint8)
    if not unequal.any():
        return None
    item = int(unequal.nonzero()[0]) // left.element_size()
    index = [int(part) for part in torch.unravel_index(torch.tensor(item), left.shape)]
    was, now = left.flatten()[item].item(), right.flatten()[item].item()
    return f"differs at {index}: was {was!r}, and is now {now!r}, in {tensor_type(left)}"


def _shown(leaf: Any, parts: Split) -> str:
    if leaf is _ABSENT:
        return "absent"
    if not isinstance(leaf, dict) or _KIND not in leaf:
        return shorten(leaf)
    if _is_tensor(leaf):
        return f"a {leaf[_KIND]} {tensor_type(parts.tensors[leaf['key']])}"
    return f"a {leaf[_KIND]}"


def _is_tensor(leaf: Any) -> bool:
    """Tell whether a leaf is a node whose data is a stored tensor."""
    return isinstance(leaf, dict) and _KIND in leaf and "key" in leaf
