"""Skeletons, packed into a manifest."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest
import zstandard

from rollout_cassettes.cassette import packed
from rollout_cassettes.cassette.packed import Packed

SKELETONS = {
    "request": ["\ud800", {"$": "tuple", "items": [1]}],
    "response": {"a": b"\0", "": None},
}


@pytest.mark.parametrize("compression", ["zstd", None])
def test_skeletons_come_back(compression):
    assert Packed.pack(SKELETONS, compression).unpack() == SKELETONS


def test_text_that_repeats_takes_little_space():
    row = {"prompt": "What is 1 + 1?", "tags": {"global_steps": 1}}
    trees = Packed.pack({"request": [row] * 1000}, "zstd")
    assert len(trees.data) * 30 < trees.raw_size


@pytest.mark.parametrize("compression", ["zstd", None])
@pytest.mark.parametrize("size", [0, 1, 10**9, 10**15, -1])
def test_another_size_than_the_manifest_says_is_refused(compression, size):
    trees = Packed.pack(SKELETONS, compression)
    with pytest.raises(ValueError, match=r"bytes"):
        replace(trees, raw_size=size).unpack()


def test_a_bomb_is_refused_before_it_goes_off(monkeypatch):
    """What it would take is in its header, and is looked at first."""
    bomb = zstandard.ZstdCompressor().compress(bytes(10**7))
    monkeypatch.setattr(zstandard.ZstdDecompressor, "decompress", None)
    with pytest.raises(ValueError, match="do not decompress to 100 bytes"):
        Packed("zstd", 100, bomb).unpack()
    with pytest.raises(ValueError, match="this machine has"):
        Packed("zstd", 10**15, bomb).unpack()


@pytest.mark.parametrize("data", [b"", b"x", b"(\xb5/\xfd", zstandard.compress(b"abc")[:-2]])
def test_what_zstd_does_not_know_is_refused(data):
    with pytest.raises(ValueError, match=r".+"):
        Packed("zstd", 3, data).unpack()


def test_another_compression_is_refused():
    with pytest.raises(ValueError, match="'lzma'"):
        Packed("lzma", 3, b"abc").unpack()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"a": 1}) + b"\0",
        msgpack.packb({"a": 1})[:-1],
        b"\x81\x90\x01",
        b"\x81\x80\x01",
        b"\x91" * 2000,
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x81\xa1\xff\x01",
        b"\xd7\xff" + bytes([255]) * 8,
    ],
    ids=repr,
)
def test_what_is_no_map_is_refused(data):
    with pytest.raises(ValueError, match="not a"):
        packed.unpack_map(data)
