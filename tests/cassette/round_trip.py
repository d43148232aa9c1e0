"""Through bytes and back, without a disk."""

from __future__ import annotations

from pathlib import Path

from rollout_cassettes.cassette import tensors, tree
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.safetensors_file import SafetensorsFile

SOURCE = Path("step-000001.msgpack")


def stored(value, *, strict=True):
    """Return what a value becomes in a cassette: its skeleton, and its tensors by path."""
    parts = tree.split(value, "response", strict=strict)
    trees = Packed.pack({"response": parts.skeleton}, None)
    data, _ = tensors.encode(parts.tensors, None)
    return trees.unpack()["response"], SafetensorsFile(bytearray(data))


def round_trip(value, *, strict=True, device=None):
    """Return what comes out of a cassette that a value went into."""
    skeleton, data = stored(value, strict=strict)
    return tree.join(skeleton, data, source=SOURCE, strict=strict, device=device)


def plain(value, *, strict=True):
    """Return what comes out where neither torch nor a framework is wanted."""
    skeleton, data = stored(value, strict=strict)
    return tree.plain(skeleton, data, source=SOURCE)
