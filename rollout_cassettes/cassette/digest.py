"""A hash over a value: equal for values that are equal to the bit."""

from __future__ import annotations

import hashlib
from typing import Any

import msgpack

from rollout_cassettes.cassette.tensors import raw_bytes
from rollout_cassettes.cassette.tree import split


def digest(value: Any) -> str:
    """Return a SHA-256 in hex over a value: over its containers, dtypes, shapes and data.

    Where tensors are in memory, and on which device, makes no difference.
    """
    parts = split(value, "", portable=True)
    state = hashlib.sha256(msgpack.packb(parts.skeleton, unicode_errors="surrogatepass"))
    for name, tensor in parts.tensors.items():
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        state.update(raw_bytes(tensor))
    return state.hexdigest()
