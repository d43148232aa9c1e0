"""The codec for Pillow's images: they are stored as PNG files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from PIL import Image

from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add, unstorable


def _split_image(value: Image.Image, into: Splitter, path: str) -> dict[str, Any]:
    png = io.BytesIO()
    try:
        value.save(png, format="PNG")
    except (OSError, ValueError) as error:
        raise unstorable(value, path, f"its mode {value.mode} has no PNG form") from error
    if not _same(value, _decode(png.getvalue())):
        raise unstorable(value, path, f"PNG would change its pixels (mode {value.mode})")
    data = torch.from_numpy(np.frombuffer(bytearray(png.getvalue()), np.uint8))
    return {"key": into.store(path, object(), value, data)}


def _decode(png: bytes) -> Image.Image:
    """Decode a PNG; Pillow refuses images that are absurdly large for their file."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        return image.copy()


def _same(left: Image.Image, right: Image.Image) -> bool:
    palettes = left.getpalette(), right.getpalette()
    same_shape = (left.mode, left.size) == (right.mode, right.size)
    return same_shape and palettes[0] == palettes[1] and left.tobytes() == right.tobytes()


def _join_image(node: dict[str, Any], joiner: Joiner) -> Image.Image:
    return _decode(bytes(joiner.raw(node["key"]).data))


add(
    Codec("PIL.image", _split_image, _join_image),
    family=lambda cls: issubclass(cls, Image.Image),
)
