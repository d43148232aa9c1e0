"""The tensors file: compressed or not, and that it can be trusted."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest
import safetensors.torch
import torch
import zstandard

from rollout_cassettes import CassetteCorruptError
from rollout_cassettes.cassette import tensors
from rollout_cassettes.cassette.manifest import TensorsFile
from tests.cassette.recording import record

DATA = {"response/a": torch.arange(1000), "response/b": torch.ones(3, 2, dtype=torch.bfloat16)}


@pytest.fixture(params=["zstd", None], ids=["zstd", "plain"])
def interaction(request, tmp_path):
    """A recorded interaction, compressed and not."""
    response = {"a": torch.arange(1000), "b": torch.ones(3, 2, dtype=torch.bfloat16)}
    return record(tmp_path / "c", response, compression=request.param)


def file_of(interaction):
    """Give its tensors file."""
    return interaction.path.with_name(interaction.manifest.tensors.file)


def refuse(interaction, match):
    """Assert that neither reading nor verifying takes it."""
    path, entry = file_of(interaction), interaction.manifest.tensors
    with pytest.raises(CassetteCorruptError, match=match) as caught:
        tensors.verify(path, entry)
    assert caught.value.path == path
    if entry.compression:  # an uncompressed file is read in part
        with pytest.raises(CassetteCorruptError, match=match):
            tensors.read(path, entry)


def test_the_safetensors_library_reads_it(interaction):
    """After `zstd -d`, where it is compressed."""
    data = file_of(interaction).read_bytes()
    if interaction.manifest.tensors.compression:
        data = zstandard.ZstdDecompressor().decompress(data)
    loaded = safetensors.torch.load(data)
    assert loaded.keys() == DATA.keys()
    assert all(torch.equal(loaded[name], DATA[name]) for name in DATA)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the zstd program")
def test_the_zstd_program_reads_it_without_flags(tmp_path):
    """Its window is within what the program takes."""
    big = {"x": torch.zeros(40_000_000)}  # 160 MB, more than the window
    interaction = record(tmp_path / "c", big)
    target = tmp_path / "tensors.safetensors"
    subprocess.run(["zstd", "-q", "-d", file_of(interaction), "-o", target], check=True)
    assert target.stat().st_size == interaction.manifest.tensors.raw_size


def test_one_altered_byte_is_noticed(interaction):
    """Anywhere in the file."""
    path = file_of(interaction)
    data = path.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        refuse(interaction, "is damaged")


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"\0", lambda _: b""]
)
def test_another_size_is_noticed(interaction, change):
    """Cut short, too long, empty."""
    path = file_of(interaction)
    path.write_bytes(change(path.read_bytes()))
    refuse(interaction, "its manifest says")


def test_a_missing_file_is_said_to_be_missing(interaction):
    """It is not the absence of the step: its manifest is there."""
    file_of(interaction).unlink()
    refuse(interaction, "is missing, though its manifest is there")


@pytest.mark.parametrize("raw_size", [10**18, -1])
def test_a_made_up_size_is_refused_before_memory_is_taken(tmp_path, raw_size):
    """More than this machine has."""
    interaction = record(tmp_path / "c", DATA)
    entry = replace(interaction.manifest.tensors, raw_size=raw_size)
    with pytest.raises(CassetteCorruptError, match="this machine has"):
        tensors.read(file_of(interaction), entry)


def test_a_bomb_is_not_decompressed_further_than_its_manifest_says(tmp_path):
    """A gigabyte of zeros in 30 kB, said to be 100 bytes."""
    path = tmp_path / "step-000001.safetensors.zst"
    compressor = zstandard.ZstdCompressor().compressobj(size=10**9)
    with path.open("wb") as file:
        for _ in range(1000):
            file.write(compressor.compress(bytes(10**6)))
        file.write(compressor.flush())
    entry = TensorsFile(path.name, path.stat().st_size, "0" * 64, "zstd", 100)
    with pytest.raises(CassetteCorruptError, match="does not decompress to 100 bytes"):
        tensors.read(path, entry)


def test_equal_tensors_cost_next_to_nothing(tmp_path):
    """zstd finds them, wherever they are in the file."""
    one = torch.randint(2**62, (100_000,))
    alone = record(tmp_path / "one", {"a": one}).manifest.tensors.size
    twice = record(tmp_path / "two", {"a": one, "b": one.clone()}).manifest.tensors.size
    assert twice < alone * 1.01


def test_the_same_memory_is_stored_once(tmp_path):
    """And is the same memory again when it is read."""
    one = torch.arange(1000)
    response = record(tmp_path / "c", {"a": one, "b": one}, compression=None).response
    response["a"][0] = 7
    assert response["b"][0] == 7
