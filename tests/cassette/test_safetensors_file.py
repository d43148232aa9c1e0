"""Safetensors files, cross-checked with the library that the format comes from."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import safetensors
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from rollout_cassettes.cassette import tensors
from rollout_cassettes.cassette.safetensors_file import (
    DTYPES,
    RawTensor,
    SafetensorsFile,
    to_pieces,
)
from tests import strategies
from tests.cassette.sameness import assert_same, bits

STORED = [getattr(torch, dtype.torch) for dtype in DTYPES.values()]

batches = st.dictionaries(st.text(max_size=4), strategies.dense(STORED), max_size=4)


def encode(batch):
    return tensors.encode(batch, None)[0]


def opened(data):
    return SafetensorsFile(bytearray(data))


@given(batches)
def test_the_library_reads_what_we_write(batch):
    again = load(encode(batch))
    assert again.keys() == batch.keys()
    for name, tensor in batch.items():
        assert_same(tensor, again[name])


@given(batches)
def test_we_read_what_the_library_writes(batch):
    file = opened(save(batch))
    assert file.keys() == batch.keys()
    for name, tensor in batch.items():
        raw = file[name]
        assert DTYPES[raw.dtype].torch == str(tensor.dtype).removeprefix("torch.")
        assert (raw.shape, bytes(raw.data)) == (tuple(tensor.shape), bits(tensor))


@given(batches)
def test_every_tensor_is_aligned(batch):
    file = opened(encode(batch))
    for raw in file.values():
        address = np.frombuffer(raw.data, np.uint8).ctypes.data if raw.data.nbytes else 0
        assert address % DTYPES[raw.dtype].size == 0


def test_tensors_of_a_foreign_file_are_aligned_where_the_file_has_them_anywhere():
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]},
    }
    file = opened(made(header, b"\x07" + struct.pack("<d", 1.5)))
    raw = file["b"]
    assert np.frombuffer(raw.data, np.uint8).ctypes.data % 8 == 0
    assert raw.numpy().tolist() == [1.5]


def test_the_same_tensors_make_the_same_file_in_any_order():
    batch = {name: torch.zeros(2, dtype=dtype) for name, dtype in zip("abc", STORED, strict=False)}
    assert encode(batch) == encode(dict(reversed(batch.items())))


def test_an_empty_batch_is_a_file_too():
    assert dict(opened(encode({}))) == {}
    assert load(encode({})) == {}


def test_bfloat16_is_widened_and_float8_given_as_bytes_where_numpy_has_none():
    file = opened(
        encode(
            {
                "bf16": torch.tensor([1.5, float("nan"), -0.0], dtype=torch.bfloat16),
                "fp8": torch.tensor([1.0, -2.0]).to(torch.float8_e4m3fn),
            }
        )
    )
    wide = file["bf16"].numpy()
    assert wide.dtype == np.float32
    assert str(wide.tolist()) == "[1.5, nan, -0.0]"
    assert file["fp8"].numpy().tolist() == [0x38, 0xC0]


def test_names_that_no_reader_would_take_are_refused(monkeypatch):
    monkeypatch.setattr("rollout_cassettes.cassette.safetensors_file._MAX_HEADER", 50)
    with pytest.raises(ValueError, match="the names of 1 tensors take"):
        to_pieces({"x" * 50: RawTensor("U8", (0,), memoryview(b""))})


# ---- what is no safetensors file


def made(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(**changes):
    return {"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2], **changes}}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 2**63),
        struct.pack("<Q", 3) + b"{}",
        made(b""),
        made(b"[]"),
        made(b"1"),
        made(b"{"),
        made(b"\xff\xfe"),
        made(b"[" * 100_000),
        made(b'{"a":' * 100_000),
        made({"a": []}),
        made({"a": None}),
        made({"a": {}}),
        made(entry(dtype="U9"), b"ab"),
        made(entry(dtype="F4"), b"ab"),
        made(entry(dtype=["U8"]), b"ab"),
        made(entry(shape=2), b"ab"),
        made(entry(shape="2"), b"ab"),
        made(entry(shape=[2.0]), b"ab"),
        made(entry(shape=[True, 2]), b"ab"),
        made(entry(shape=[-1, -2]), b"ab"),
        made(entry(shape=[3]), b"ab"),
        made(entry(shape=[2**62, 2**62]), b"ab"),
        made(entry(data_offsets=[0]), b"ab"),
        made(entry(data_offsets=[0, 2, 3]), b"ab"),
        made(entry(data_offsets=[2, 0]), b"ab"),
        made(entry(data_offsets=[-2, 0]), b"ab"),
        made(entry(data_offsets=[1, 3]), b"ab"),
        made(entry(data_offsets=["0", "2"]), b"ab"),
        made(entry(data_offsets=None), b"ab"),
    ],
    ids=lambda data: repr(data)[:60],
)
def test_what_is_no_safetensors_file_is_refused(data):
    with pytest.raises(ValueError, match=r".+"):
        opened(data)


@settings(max_examples=200)
@given(st.data())
def test_altered_bytes_raise_nothing_but_value_errors(data):
    file = bytearray(encode({"ab": torch.arange(3), "c": torch.zeros(2, 2, dtype=torch.bfloat16)}))
    length = struct.unpack("<Q", file[:8])[0]
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(0, 8 + length - 1))] = data.draw(st.integers(0, 255))
    try:
        opened(file[: data.draw(st.integers(0, len(file)))])
    except ValueError:
        return


def test_metadata_of_another_writer_is_passed_over():
    data = save({"a": torch.zeros(1)}, metadata={"format": "pt"})
    assert list(opened(data)) == ["a"]


def test_the_library_still_knows_every_dtype_that_we_use():
    for name in DTYPES:
        data = b"".join(to_pieces({"a": RawTensor(name, (0,), memoryview(b""))}))
        assert safetensors.deserialize(data)[0][1]["dtype"] == name
