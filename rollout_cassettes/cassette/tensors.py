"""The tensors file of an interaction: a safetensors file, compressed with zstd or as it is."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

import zstandard

from rollout_cassettes.cassette.damage import damaged
from rollout_cassettes.cassette.manifest import TensorsFile
from rollout_cassettes.cassette.memory import refuse_more_than_memory
from rollout_cassettes.cassette.safetensors_file import (
    DTYPES,
    RawTensor,
    SafetensorsFile,
    to_pieces,
)

if TYPE_CHECKING:
    from pathlib import Path

    import torch

SUFFIXES = {"zstd": ".safetensors.zst", None: ".safetensors"}
"""Compression -> how the file's name ends."""

LEVEL = 3
WINDOW_LOG = 27
"""The largest window (2**27 bytes) that the ``zstd`` program decodes without being told to."""

_CHUNK = 1 << 20
_NAMES = {dtype.torch: name for name, dtype in DTYPES.items()}


def encode(tensors: dict[str, torch.Tensor], compression: str | None) -> tuple[bytes, int]:
    """Return the bytes of a tensors file, and the size of the safetensors file in it."""
    return encode_raw({name: _raw(tensor) for name, tensor in tensors.items()}, compression)


def encode_raw(tensors: Mapping[str, RawTensor], compression: str | None) -> tuple[bytes, int]:
    """Return the same, of tensors as they are stored."""
    pieces = to_pieces(tensors)
    raw_size = sum(len(piece) for piece in pieces)
    if compression is None:
        return b"".join(pieces), raw_size
    return compressed(*pieces), raw_size


def compressed(*pieces: bytes | memoryview) -> bytes:
    """Return the bytes of a compressed tensors file, made of the pieces of a safetensors file."""
    stream = _compressor().compressobj(size=sum(len(piece) for piece in pieces))
    return b"".join([*map(stream.compress, pieces), stream.flush()])


def entry_of(stem: str, encoded: bytes, raw_size: int, compression: str | None) -> TensorsFile:
    """Return what a manifest says of a tensors file.

    Args:
        stem: The stem of its name.
        encoded: Its bytes.
        raw_size: The size of the safetensors file that it is, or holds, in bytes.
        compression: ``"zstd"`` or None.
    """
    return TensorsFile(
        file=stem + SUFFIXES[compression],
        size=len(encoded),
        sha256=hashlib.sha256(encoded).hexdigest(),
        compression=compression,
        raw_size=raw_size,
    )


def decompressed(path: Path, entry: TensorsFile) -> bytes:
    """Return the bytes of the safetensors file that a tensors file is, or holds.

    Raises:
        CassetteCorruptError: If the file is missing, damaged, or not the one that was recorded.
    """
    try:
        with path.open("rb") as file:
            _check_size(file, path, entry)
            return bytes(_decompress(file, path, entry) if entry.compression else file.read())
    except (FileNotFoundError, ValueError, zstandard.ZstdError) as error:
        raise damaged(path, f"it is not a whole tensors file ({error})") from error


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a contiguous tensor on the CPU, without copying them."""
    import torch  # noqa: PLC0415 - reading needs no torch

    flat = tensor.as_strided((tensor.numel(),), (1,))  # one item may be contiguous at any stride
    return flat.view(torch.uint8).numpy().data


def _raw(tensor: torch.Tensor) -> RawTensor:
    dtype = _NAMES[str(tensor.dtype).removeprefix("torch.")]
    return RawTensor(dtype, tuple(tensor.shape), raw_bytes(tensor))


def _compressor() -> zstandard.ZstdCompressor:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        enable_ldm=True,
        window_log=WINDOW_LOG,
        write_checksum=True,
        write_content_size=True,
    )
    return zstandard.ZstdCompressor(compression_params=parameters)


def read(path: Path, entry: TensorsFile) -> SafetensorsFile:
    """Open a tensors file.

    A compressed file is read and verified whole. An uncompressed one is mapped into memory, and
    only what is asked for is read: call :func:`verify` to check it whole.

    Args:
        path: The file.
        entry: What its manifest says of it.

    Raises:
        CassetteCorruptError: If the file is missing, damaged, or not the one that was recorded.
    """
    try:
        with path.open("rb") as file:
            _check_size(file, path, entry)
            buffer = _decompress(file, path, entry) if entry.compression else _map(file)
        return SafetensorsFile(buffer)
    except FileNotFoundError as error:
        raise damaged(path, "the file is missing, though its manifest is there") from error
    except (ValueError, zstandard.ZstdError) as error:
        raise damaged(path, f"it is not a whole tensors file ({error})") from error


def read_alone(path: Path) -> SafetensorsFile:
    """Open a tensors file without its manifest, so without knowing what it should be.

    Raises:
        CassetteCorruptError: If it is no whole tensors file.
    """
    data = path.read_bytes()
    size = len(data)
    compression = "zstd" if path.name.endswith(SUFFIXES["zstd"]) else None
    try:
        if compression:
            size = zstandard.get_frame_parameters(data).content_size
            refuse_more_than_memory(size)
        entry = TensorsFile(
            path.name, len(data), hashlib.sha256(data).hexdigest(), compression, size
        )
        return read(path, entry)
    except (ValueError, zstandard.ZstdError) as error:
        raise damaged(path, f"it is not a whole tensors file ({error})") from error


def verify(path: Path, entry: TensorsFile) -> None:
    """Check a tensors file against the size and SHA-256 in its manifest.

    Raises:
        CassetteCorruptError: If they differ, or the file is missing.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            _check_size(file, path, entry)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError as error:
        raise damaged(path, "the file is missing, though its manifest is there") from error
    _check_digest(digest.hexdigest(), path, entry)


def _check_size(file: BinaryIO, path: Path, entry: TensorsFile) -> None:
    size = os.fstat(file.fileno()).st_size
    if size != entry.size:
        raise damaged(path, f"it has {size} bytes, its manifest says {entry.size}")
    if entry.compression is None and entry.raw_size != size:
        raise damaged(path, f"it has {size} bytes, its manifest says {entry.raw_size}")
    if not entry.raw_size:
        raise damaged(path, "its manifest says that it holds no bytes")
    try:
        refuse_more_than_memory(entry.size)
        refuse_more_than_memory(entry.raw_size)
    except ValueError as error:
        raise damaged(path, str(error)) from error


def _check_digest(found: str, path: Path, entry: TensorsFile) -> None:
    if found != entry.sha256:
        raise damaged(path, "its contents are not what was recorded (SHA-256 differs)")


def _map(file: BinaryIO) -> mmap.mmap:
    """Map a file privately: writing to a tensor changes a copy of its page, never the file."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _decompress(file: BinaryIO, path: Path, entry: TensorsFile) -> mmap.mmap:
    """Decompress a file, once its hash was found to be right.

    zstd is given the whole file, and room for all that is in it: it then fills that room in one
    pass. Piece by piece, it would fill a window of its own first and copy from there.
    """
    data = file.read(entry.size)
    _check_digest(hashlib.sha256(data).hexdigest(), path, entry)
    memory = _memory(entry.raw_size)
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
    with decompressor.stream_reader(data) as stream:
        if stream.readinto(memory) != len(memory) or stream.read(1):
            raise damaged(path, f"it does not decompress to {entry.raw_size} bytes")
    return memory


def _memory(size: int) -> mmap.mmap:
    """Take memory that need not be filled with zeros first, in huge pages where the system has them.

    Filling 4 kB pages for the first time takes as long as decompressing into them.
    """
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
