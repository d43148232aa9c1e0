"""Pillow's images, in trees."""

from __future__ import annotations

import io

import pytest
import torch
from PIL import Image

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored


def image(mode, size=(3, 2)):
    made = Image.new(mode, size)
    data = bytes(range(len(made.tobytes())))
    return Image.frombytes(mode, size, data)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "I;16"])
def test_an_image_comes_back_with_the_same_pixels(mode):
    before = image(mode)
    after = round_trip(before)
    assert (after.mode, after.size, after.tobytes()) == (before.mode, before.size, before.tobytes())


def test_an_image_with_a_palette_comes_back_with_the_same_colours():
    before = image("P")
    before.putpalette(bytes(range(100, 130)))
    before.info["transparency"] = 2
    after = round_trip(before)
    assert (after.mode, after.tobytes()) == ("P", before.tobytes())
    assert after.convert("RGBA").tobytes() == before.convert("RGBA").tobytes()


def test_an_image_that_was_opened_from_a_file_comes_back():
    file = io.BytesIO()
    image("RGB").save(file, "PNG")
    opened = Image.open(io.BytesIO(file.getvalue()))
    assert round_trip(opened).tobytes() == image("RGB").tobytes()


@pytest.mark.parametrize("mode", ["F", "CMYK", "YCbCr", "HSV", "LAB", "RGBX", "La"])
def test_an_image_that_png_would_change_is_refused(mode):
    with pytest.raises(UnstorableValueError, match="PNG"):
        round_trip(Image.new(mode, (2, 2)))


def test_an_image_without_pixels_is_refused_or_comes_back():
    """Whatever Pillow makes of it: it ends no run."""
    tree.split(Image.new("RGB", (0, 0)), "response")


def test_an_image_is_stored_as_a_png_file():
    png = plain(image("RGB"))
    assert png.startswith(b"\x89PNG\r\n")
    assert Image.open(io.BytesIO(png)).tobytes() == image("RGB").tobytes()


@pytest.mark.parametrize("cut", [0, 8, 30, 45])
def test_a_damaged_image_is_damage(cut):
    skeleton, data = stored(image("RGB"))
    png = bytes(data[skeleton["key"]].data)[:cut]
    node, broken = stored(torch.tensor(list(png)).to(torch.uint8))
    with pytest.raises(CassetteCorruptError):
        tree.join({"$": "PIL.image", "key": node["key"]}, broken, source=SOURCE)


def test_an_image_that_unpacks_to_too_much_is_refused(monkeypatch):
    skeleton, data = stored(Image.new("RGB", (300, 300)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(CassetteCorruptError, match="Bomb"):
        tree.join(skeleton, data, source=SOURCE)
