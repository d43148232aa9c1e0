"""Skeletons, packed into a manifest: msgpack, compressed like the tensors beside it.

Skeletons hold the text of a batch (prompts, answers, keys, tags), row after row: compressed they
take a thirtieth of the space, and what only lists a cassette need not decode them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack
import zstandard

from rollout_cassettes.cassette.memory import refuse_more_than_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVEL = 3


@dataclass(frozen=True)
class Packed:
    """Skeletons by name, packed.

    Attributes:
        compression: ``"zstd"``, or None.
        raw_size: The size of the msgpack map, in bytes.
        data: The msgpack map, compressed or as it is.
    """

    compression: str | None
    raw_size: int
    data: bytes = field(repr=False)

    @classmethod
    def pack(cls, skeletons: Mapping[str, Any], compression: str | None) -> Packed:
        """Pack skeletons."""
        raw = msgpack.packb(dict(skeletons), unicode_errors="surrogatepass")
        return cls(None, len(raw), raw).repacked(compression)

    def repacked(self, compression: str | None) -> Packed:
        """Return the same skeletons, compressed or as they are.

        Raises:
            ValueError: If they are not what :meth:`pack` makes.
        """
        raw = self.data if self.compression is None else self._decompress()
        data = raw if compression is None else zstandard.ZstdCompressor(LEVEL).compress(raw)
        return Packed(compression, self.raw_size, data)

    def unpack(self) -> dict[str, Any]:
        """Return the skeletons by name.

        Raises:
            ValueError: If they are not what :meth:`pack` makes.
        """
        raw = self.data if self.compression is None else self._decompress()
        if len(raw) != self.raw_size:
            raise ValueError(f"{len(raw)} bytes of skeletons, not {self.raw_size}")
        return unpack_map(raw)

    def _decompress(self) -> bytes:
        if self.compression != "zstd":
            raise ValueError(f"its skeletons are compressed with {self.compression!r}")
        refuse_more_than_memory(self.raw_size)
        try:
            if zstandard.get_frame_parameters(self.data).content_size != self.raw_size:
                raise ValueError(f"the skeletons do not decompress to {self.raw_size} bytes")
            return zstandard.ZstdDecompressor().decompress(self.data)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error


def unpack_map(data: bytes) -> dict[str, Any]:
    """Return the msgpack map that these bytes are.

    Raises:
        ValueError: If they are anything else.
    """
    try:
        value = msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogatepass")
    except (TypeError, ValueError, msgpack.UnpackException) as error:
        raise ValueError(f"not a whole msgpack map: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("not a msgpack map")  # noqa: TRY004 - it is damage all the same
    return value
