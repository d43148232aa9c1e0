"""Tensors files: compressed or not; whole, damaged or malicious."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import replace

import pytest
import torch
import zstandard
from safetensors.torch import load

from rollout_cassettes.cassette import memory, tensors
from rollout_cassettes.cassette.manifest import TensorsFile
from rollout_cassettes.errors import CassetteCorruptError

BATCH = {
    "response/ids": torch.arange(1000).view(10, 100),
    "response/log_probs": torch.linspace(0, 1, 10, dtype=torch.bfloat16),
    "request/mask": torch.tensor([True, False]),
}


class Stored:
    """A tensors file on disk, and what its manifest says of it."""

    def __init__(self, directory, compression):
        self.data, raw_size = tensors.encode(BATCH, compression)
        self.path = directory / f"step-000001{tensors.SUFFIXES[compression]}"
        self.entry = TensorsFile(
            self.path.name,
            len(self.data),
            hashlib.sha256(self.data).hexdigest(),
            compression,
            raw_size,
        )
        self.path.write_bytes(self.data)

    def alter(self, data, *, trusted=False):
        """Put other bytes there; ``trusted`` by a manifest that was altered with them."""
        self.path.write_bytes(data)
        if trusted:
            digest = hashlib.sha256(data).hexdigest()
            self.entry = replace(self.entry, size=len(data), sha256=digest)


@pytest.fixture(params=["zstd", None])
def stored(request, tmp_path):
    return Stored(tmp_path, request.param)


@pytest.fixture
def packed(tmp_path):
    return Stored(tmp_path, "zstd")


@pytest.fixture
def unpacked(tmp_path):
    return Stored(tmp_path, None)


def values(file):
    return {name: raw.numpy().tolist() for name, raw in file.items()}


EXPECTED = {name: tensor.float().tolist() for name, tensor in BATCH.items()}


def test_what_was_written_is_read(stored):
    assert values(tensors.read(stored.path, stored.entry)) == EXPECTED
    tensors.verify(stored.path, stored.entry)


def test_the_safetensors_library_reads_it(stored):
    data = zstandard.decompress(stored.data) if stored.entry.compression else stored.data
    assert len(data) == stored.entry.raw_size
    assert {name: tensor.float().tolist() for name, tensor in load(data).items()} == EXPECTED


@pytest.mark.skipif(not shutil.which("zstd"), reason="needs the zstd program")
def test_the_zstd_program_decompresses_it_without_being_told_to(packed):
    """The window is the largest that it takes by default, however large the batch is."""
    big = {"a": torch.zeros(2**26, dtype=torch.int32)}
    packed.path.write_bytes(tensors.encode(big, "zstd")[0])
    done = subprocess.run(["zstd", "-d", "-c", packed.path], capture_output=True, check=True)
    assert len(done.stdout) > 2**28


def test_the_window_is_the_largest_that_readers_allow_by_default():
    frame = tensors.encode({"a": torch.zeros(2**28, dtype=torch.uint8)}, "zstd")[0]
    assert zstandard.get_frame_parameters(frame).window_size <= 2**27


def test_padding_takes_no_space():
    data, raw_size = tensors.encode({"a": torch.zeros(1024, 1024, dtype=torch.int64)}, "zstd")
    assert len(data) * 1000 < raw_size


def test_a_missing_file_is_named(stored):
    stored.path.unlink()
    for check in (tensors.read, tensors.verify):
        with pytest.raises(CassetteCorruptError, match="is missing, though its manifest is there"):
            check(stored.path, stored.entry)


@pytest.mark.parametrize("size", [0, 1, 7, 100, -1])
def test_a_file_that_was_cut_short_is_noticed(stored, size):
    stored.alter(stored.data[:size])
    for check in (tensors.read, tensors.verify):
        with pytest.raises(CassetteCorruptError, match="bytes, its manifest says"):
            check(stored.path, stored.entry)


def test_bytes_behind_the_file_are_noticed(stored):
    stored.alter(stored.data + b"\0")
    with pytest.raises(CassetteCorruptError, match="bytes, its manifest says"):
        tensors.read(stored.path, stored.entry)


def test_an_altered_byte_of_a_compressed_file_is_noticed_wherever_it_is(packed):
    for place in range(0, len(packed.data), 7):
        broken = bytearray(packed.data)
        broken[place] ^= 1
        packed.alter(bytes(broken))
        for check in (tensors.read, tensors.verify):
            with pytest.raises(CassetteCorruptError, match="SHA-256 differs"):
                check(packed.path, packed.entry)


def test_an_altered_file_is_not_given_to_zstd(packed, monkeypatch):
    """Its decompressor is code in C, and sees only what the manifest vouches for."""
    packed.alter(packed.data[:-1] + bytes([packed.data[-1] ^ 1]))
    monkeypatch.setattr(tensors.zstandard, "ZstdDecompressor", pytest.fail)
    with pytest.raises(CassetteCorruptError, match="SHA-256 differs"):
        tensors.read(packed.path, packed.entry)


def test_decompressing_takes_no_memory_beside_the_tensors(tmp_path, monkeypatch):
    """No window that zstd fills first, which took half of the time."""
    monkeypatch.setitem(BATCH, "response/large", torch.arange(2**20))
    big = Stored(tmp_path, "zstd")
    made, make = [], zstandard.ZstdDecompressor
    monkeypatch.setattr(
        tensors.zstandard,
        "ZstdDecompressor",
        lambda **options: made.append(make(**options)) or made[-1],
    )
    assert len(tensors.read(big.path, big.entry)) == len(BATCH)
    assert [decompressor.memory_size() < 2**20 for decompressor in made] == [True]


def test_what_does_not_say_its_size_is_decompressed_too(packed):
    """By streaming, through a window: other writers may write such files."""
    raw = zstandard.decompress(packed.data)
    stream = zstandard.ZstdCompressor().compressobj()
    packed.alter(stream.compress(raw) + stream.flush(), trusted=True)
    assert values(tensors.read(packed.path, packed.entry)) == EXPECTED


def test_an_altered_byte_of_a_plain_file_is_noticed_when_it_is_verified(unpacked):
    for place in range(0, len(unpacked.data), 97):
        broken = bytearray(unpacked.data)
        broken[place] ^= 1
        unpacked.alter(bytes(broken))
        with pytest.raises(CassetteCorruptError, match="SHA-256 differs"):
            tensors.verify(unpacked.path, unpacked.entry)


def test_another_batch_of_the_same_size_is_noticed(packed):
    """It is a sound file, but not the one that was recorded."""
    other = {**BATCH, "request/mask": torch.tensor([False, True])}
    data = bytearray(tensors.encode(other, "zstd")[0])
    packed.entry = replace(packed.entry, size=len(data))
    packed.alter(bytes(data))
    with pytest.raises(CassetteCorruptError, match="SHA-256 differs"):
        tensors.read(packed.path, packed.entry)


@pytest.mark.parametrize("change", [-1, 1, 1000, -1000])
def test_a_file_that_unpacks_to_another_size_is_refused(packed, change):
    packed.entry = replace(packed.entry, raw_size=packed.entry.raw_size + change)
    with pytest.raises(CassetteCorruptError, match="does not decompress to"):
        tensors.read(packed.path, packed.entry)


def test_a_bomb_is_unpacked_no_further_than_its_manifest_says(packed, monkeypatch):
    """A manifest that was altered with it may say little, and the file hold much."""
    packed.alter(zstandard.compress(bytes(10**8)), trusted=True)
    taken, memory = [], tensors._memory
    monkeypatch.setattr(tensors, "_memory", lambda size: taken.append(size) or memory(size))
    with pytest.raises(CassetteCorruptError, match="does not decompress to"):
        tensors.read(packed.path, packed.entry)
    assert taken == [packed.entry.raw_size]


@pytest.mark.parametrize("size", [2**60, 2**63 - 1, -1])
def test_a_claim_of_more_memory_than_there_is_is_refused(packed, size):
    packed.entry = replace(packed.entry, raw_size=size)
    for check in (tensors.read, tensors.verify):
        with pytest.raises(CassetteCorruptError, match="this machine has"):
            check(packed.path, packed.entry)


def test_a_file_that_claims_to_hold_nothing_is_refused(packed):
    packed.entry = replace(packed.entry, raw_size=0)
    for check in (tensors.read, tensors.verify):
        with pytest.raises(CassetteCorruptError, match="holds no bytes"):
            check(packed.path, packed.entry)


def test_a_file_of_more_bytes_than_there_is_memory_is_refused(packed, monkeypatch):
    """It is read whole; a sparse file may claim any size, and take no space on the disk."""
    packed.entry = replace(packed.entry, raw_size=10)
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 10)
    with pytest.raises(CassetteCorruptError, match="this machine has 100"):
        tensors.read(packed.path, packed.entry)


def test_memory_may_be_all_that_the_machine_has(monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 10)
    memory.refuse_more_than_memory(100)
    with pytest.raises(ValueError, match="this machine has 100"):
        memory.refuse_more_than_memory(101)


def test_a_window_larger_than_readers_allow_is_refused(packed):
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    stream = compressor.compressobj()
    packed.alter(stream.compress(bytes(2**10)) + stream.flush(), trusted=True)
    packed.entry = replace(packed.entry, raw_size=2**10)
    with pytest.raises(CassetteCorruptError, match=r"memory|window"):
        tensors.read(packed.path, packed.entry)


@pytest.mark.parametrize("data", [b"\0" * 8, b"\xff" * 16, b"\x02\0\0\0\0\0\0\0{}", b"x" * 100])
def test_what_is_no_safetensors_file_is_damage(unpacked, data):
    unpacked.alter(data, trusted=True)
    unpacked.entry = replace(unpacked.entry, raw_size=len(data))
    if data.endswith(b"{}"):
        assert not tensors.read(unpacked.path, unpacked.entry)
        return
    with pytest.raises(CassetteCorruptError, match="not a whole tensors file"):
        tensors.read(unpacked.path, unpacked.entry)


def test_a_plain_file_is_as_large_as_its_contents(unpacked):
    unpacked.entry = replace(unpacked.entry, raw_size=unpacked.entry.size + 1)
    with pytest.raises(CassetteCorruptError, match="its manifest says"):
        tensors.read(unpacked.path, unpacked.entry)


def test_a_tensor_may_be_changed_and_the_file_stays(stored):
    for raw in tensors.read(stored.path, stored.entry).values():
        raw.data[:1] = b"\x05"
    assert stored.path.read_bytes() == stored.data
    assert values(tensors.read(stored.path, stored.entry)) == EXPECTED
