"""Files of a cassette as lines of text, so that `git diff` and `grep` can read them.

Skeletons and tensors are written as they are stored: no class is needed, and nothing is joined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rollout_cassettes.cassette import tensors
from rollout_cassettes.cassette.damage import damaged
from rollout_cassettes.cassette.manifest import SUFFIX, Manifest
from rollout_cassettes.cassette.safetensors_file import DTYPES, RawTensor
from rollout_cassettes.cassette.tree.codec import KIND
from rollout_cassettes.display.arrays import array_type
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError

_INDENT = "  "
_PER_LINE = 16
_MOST_ITEMS = 65_536
"""Larger tensors are told by their hash: nobody reads them, and a change shows all the same."""

_APART = frozenset({"tensors", "trees", "fingerprint", "omissions"})


def file_lines(path: Path) -> Iterator[str]:
    """Give the lines of one file: a manifest, or a tensors file.

    Raises:
        CassetteError: If it is neither.
        CassetteCorruptError: If it is damaged.
    """
    try:
        if path.name.endswith(SUFFIX):
            yield from manifest_lines(Manifest.from_bytes(path.read_bytes(), path), path)
        elif path.name.endswith(tuple(tensors.SUFFIXES.values())):
            yield from tensors_lines(tensors.read_alone(path))
        else:
            raise CassetteError(
                f"{path} is no file of a cassette.",
                fixes=[f"Name a file that ends with {SUFFIX}, .safetensors or .safetensors.zst."],
            )
    except FileNotFoundError as error:
        raise CassetteError(f"There is no file {path}.") from error


def manifest_lines(manifest: Manifest, path: Path) -> Iterator[str]:
    """Give the lines of a manifest: what it says, then its skeletons.

    Raises:
        CassetteCorruptError: If the skeletons are damaged.
    """
    entries = {n: v for n, v in vars(manifest).items() if n not in _APART}
    yield from _lines("", entries, 0)
    yield from _lines("tensors", asdict(manifest.tensors), 0)
    yield from _lines("omissions", [list(omission) for omission in manifest.omissions], 0)
    try:
        skeletons = manifest.trees.unpack()
    except ValueError as error:
        raise damaged(path, str(error)) from error
    for name, skeleton in skeletons.items():
        yield from _lines(name, skeleton, 0)


def tensors_lines(stored: Mapping[str, RawTensor]) -> Iterator[str]:
    """Give the lines of tensors by path: dtype, shape, and what is in them."""
    for name in sorted(stored):
        tensor = stored[name]
        yield f"{visible(name)}  {array_type(DTYPES[tensor.dtype].torch, tensor.shape)}"
        yield from _values(tensor)


def _values(tensor: RawTensor) -> Iterator[str]:
    array = tensor.numpy()
    if array.size > _MOST_ITEMS:
        yield f"{_INDENT}sha256 {hashlib.sha256(tensor.data).hexdigest()}"
        return
    width = array.shape[-1] if array.ndim > 1 else _PER_LINE
    items = [repr(item) for item in array.ravel().tolist()]
    for start in range(0, len(items), max(width, 1)):
        yield _INDENT + " ".join(items[start : start + width])


def _lines(name: str, node: Any, depth: int) -> Iterator[str]:
    """Give the lines of a skeleton; a node that only names a tensor takes one."""
    label = f"{_INDENT * depth}{visible(name)}"
    inside = depth + 1 if name else depth
    if isinstance(node, dict) and node and not _is_tensor(node):
        kind = node.get(KIND)
        if name:
            yield label if kind is None else f"{label}  <{visible(str(kind))}>"
        for part, item in node.items():
            if part != KIND:
                yield from _lines(str(part), item, inside)
    elif isinstance(node, list) and any(isinstance(item, (dict, list)) for item in node):
        yield label
        for number, item in enumerate(node):
            yield from _lines(f"[{number}]", item, inside)
    elif isinstance(node, dict) and _is_tensor(node):
        yield f"{label}  <{node[KIND]} {visible(node['key'])}>"
    else:
        yield f"{label}  {visible(repr(node))}"


def _is_tensor(node: dict[Any, Any]) -> bool:
    return node.keys() == {KIND, "key"}
