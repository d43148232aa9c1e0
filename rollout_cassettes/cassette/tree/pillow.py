"""The codec for Pillow's images: they are stored as PNG files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from PIL import Image

from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter, unstorable


def _split_image(value: Image.Image, into: Splitter, path: str) -> dict[str, Any]:
    file = io.BytesIO()
    try:
        value.save(file, format="PNG")
    except (OSError, ValueError) as error:
        raise unstorable(value, path, f"it can't be saved as PNG: {error}") from error
    png = file.getvalue()
    if not _same(value, _decode(png)):
        raise unstorable(value, path, f"PNG would change its pixels (mode {value.mode})")
    data = torch.from_numpy(np.frombuffer(bytearray(png), np.uint8))
    return {"key": into.store(path, object(), value, data)}


def _decode(png: bytes) -> Image.Image:
    """Decode a PNG; Pillow refuses images that are absurdly large for their file."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        return image.copy()


def _same(left: Image.Image, right: Image.Image) -> bool:
    """Tell whether two images look the same; PNG drops colours of a palette that none shows."""
    if (left.mode, left.size) != (right.mode, right.size) or left.tobytes() != right.tobytes():
        return False
    return left.palette is None or left.convert("RGBA") == right.convert("RGBA")


def _join_image(node: dict[str, Any], joiner: Joiner) -> Image.Image:
    return _decode(bytes(joiner.tensors[node["key"]].data))


add(
    Codec("PIL.image", _split_image, _join_image),
    family=lambda cls: issubclass(cls, Image.Image),
)
