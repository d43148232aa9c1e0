"""The bytes of a safetensors file, read without copying them.

Files are written by the safetensors library. They are read here, because that library gives
neither bfloat16 nor float8 without torch, and copies every tensor of a file that was
decompressed into memory. The layout: https://huggingface.co/docs/safetensors/index#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import mmap

    import numpy as np

ITEM_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4,
    "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
"""Bytes per item of the safetensors dtypes that cassettes use."""

_NUMPY = {
    "BOOL": "?", "U8": "<u1", "I8": "<i1", "U16": "<u2", "I16": "<i2", "U32": "<u4",
    "I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip

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
        return np.frombuffer(self.data, _NUMPY.get(self.dtype, "<u1")).reshape(self.shape)


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
        header = json.loads(bytes(view[8 : 8 + length]))
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        self._data = view[8 + length :]
        self._entries: dict[str, dict[str, Any]] = header
        for name, entry in header.items():
            _check(name, entry, len(self._data))

    def __getitem__(self, name: str) -> RawTensor:
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        return RawTensor(entry["dtype"], tuple(entry["shape"]), self._data[start:end])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _check(name: str, entry: dict[str, Any], available: int) -> None:
    """Refuse an entry whose shape, dtype and place in the file don't agree."""
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in ITEM_SIZES:
        raise ValueError(f"{name} has the dtype {dtype!r}, which cassettes don't use")
    if any(type(size) is not int or size < 0 for size in [*shape, start, end]):
        raise ValueError(f"{name} has a shape or a place that is no list of whole numbers")
    if not start <= end <= available or math.prod(shape) * ITEM_SIZES[dtype] != end - start:
        raise ValueError(f"{name} of shape {shape} and dtype {dtype} does not fit its place")
