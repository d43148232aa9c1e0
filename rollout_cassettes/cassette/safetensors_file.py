"""The bytes of a safetensors file, made and read without copying tensors more often than needed.

The safetensors library refuses to write tensors that overlap in memory, such as the rows of a batch
and the batch itself; it gives neither bfloat16 nor float8 without torch; and it copies every
tensor of a file that was decompressed into memory. So the format is written and read here: it is
small. The layout: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import mmap

    import numpy as np


class Dtype(NamedTuple):
    """A safetensors dtype.

    Attributes:
        size: Bytes per item.
        torch: What torch calls it.
        numpy: What numpy gives for it.
    """

    size: int
    torch: str
    numpy: str


DTYPES = {
    "BOOL": Dtype(1, "bool", "?"),
    "U8": Dtype(1, "uint8", "<u1"),
    "I8": Dtype(1, "int8", "<i1"),
    "F8_E4M3": Dtype(1, "float8_e4m3fn", "<u1"),
    "F8_E5M2": Dtype(1, "float8_e5m2", "<u1"),
    "U16": Dtype(2, "uint16", "<u2"),
    "I16": Dtype(2, "int16", "<i2"),
    "F16": Dtype(2, "float16", "<f2"),
    "BF16": Dtype(2, "bfloat16", "<f4"),
    "U32": Dtype(4, "uint32", "<u4"),
    "I32": Dtype(4, "int32", "<i4"),
    "F32": Dtype(4, "float32", "<f4"),
    "U64": Dtype(8, "uint64", "<u8"),
    "I64": Dtype(8, "int64", "<i8"),
    "F64": Dtype(8, "float64", "<f8"),
}
"""The safetensors dtypes that cassettes use: those that every reader knows."""

_ALIGNMENT = 8  # bytes, the largest item
_MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors library


class RawTensor(NamedTuple):
    """One stored tensor.

    Attributes:
        dtype: Its safetensors dtype, such as ``"BF16"``.
        shape: Its shape.
        data: Its bytes, little-endian, row-major; writable, and not shared with the file.
    """

    dtype: str
    shape: tuple[int, ...]
    data: memoryview

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the tensor as an array that shares this memory.

        numpy has no bfloat16 and no float8: bfloat16 is widened to float32, which is exact, and
        float8 is given as its bytes, uint8.
        """
        import numpy as np  # noqa: PLC0415 - opening a cassette needs no numpy

        if self.dtype == "BF16":
            wide = np.frombuffer(self.data, "<u2").astype("<u4") << 16
            return wide.view("<f4").reshape(self.shape)
        return np.frombuffer(self.data, DTYPES[self.dtype].numpy).reshape(self.shape)


def to_pieces(tensors: Mapping[str, RawTensor]) -> list[bytes | memoryview]:
    """Return a safetensors file with these tensors, in pieces; larger items first, so all aligned.

    Raises:
        ValueError: If the names take more than the 100 MB that readers allow.
    """
    order = sorted(tensors, key=lambda name: (-DTYPES[tensors[name].dtype].size, name))
    header: dict[str, Any] = {}
    end = 0
    for name in order:
        dtype, shape, data = tensors[name]
        start, end = end, end + data.nbytes
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > _MAX_HEADER:
        raise ValueError(f"the names of {len(order)} tensors take {len(text)} bytes")
    length = len(text).to_bytes(8, "little")
    return [length, text, *(tensors[name].data for name in order)]


class SafetensorsFile(Mapping[str, RawTensor]):
    """The tensors in the bytes of a safetensors file.

    Args:
        buffer: The whole file: a bytearray, or a private (copy-on-write) memory map.

    Raises:
        ValueError: If the bytes are not a safetensors file.
    """

    def __init__(self, buffer: bytearray | mmap.mmap) -> None:
        view = memoryview(buffer)
        length = int.from_bytes(view[:8], "little")
        if len(view) < 8 or length > min(len(view) - 8, _MAX_HEADER):  # noqa: PLR2004
            raise ValueError("the header is longer than the file")
        self._data = view[8 + length :]
        self._aligned = length % _ALIGNMENT == 0
        self._entries = _parse(bytes(view[8 : 8 + length]), len(self._data))

    def __getitem__(self, name: str) -> RawTensor:
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        data = self._data[start:end]
        if not self._aligned or start % DTYPES[entry["dtype"]].size:
            data = memoryview(bytearray(data))
        return RawTensor(entry["dtype"], tuple(entry["shape"]), data)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _parse(header: bytes, available: int) -> dict[str, dict[str, Any]]:
    """Return the checked entries of a header, for so many bytes of tensor data."""
    try:
        entries: dict[str, dict[str, Any]] = json.loads(header)
        entries.pop("__metadata__", None)
        for name, entry in entries.items():
            _check(name, entry, available)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the header is malformed: {error!r}") from error
    return entries


def _check(name: str, entry: dict[str, Any], available: int) -> None:
    """Refuse an entry whose shape, dtype and place in the file don't agree."""
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in DTYPES:
        raise ValueError(f"{name} has the dtype {dtype!r}, which cassettes don't use")
    if any(type(size) is not int or size < 0 for size in [*shape, start, end]):
        raise ValueError(f"{name} has a shape or a place that is no list of whole numbers")
    if not start <= end <= available or math.prod(shape) * DTYPES[dtype].size != end - start:
        raise ValueError(f"{name} of shape {shape} and dtype {dtype} does not fit its place")
