"""The manifest of an interaction: everything but the tensors, and the commit record."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgpack

from rollout_cassettes.cassette import schema
from rollout_cassettes.cassette.damage import damaged
from rollout_cassettes.cassette.key import Key
from rollout_cassettes.cassette.packed import Packed, unpack_map
from rollout_cassettes.cassette.tree import Omission
from rollout_cassettes.errors import CassetteVersionError

FORMAT = "rollout_cassettes"
VERSION = 1
SUFFIX = ".msgpack"

_NO_DIGEST = bytes(32)
_DIGEST_ENTRY = msgpack.packb("sha256") + msgpack.packb(_NO_DIGEST)[:2]


@dataclass(frozen=True)
class TensorsFile:
    """What a manifest says of its tensors file.

    Attributes:
        file: Its name, in the manifest's directory.
        size: Its size on disk, in bytes.
        sha256: The SHA-256 of its bytes on disk, in hex.
        compression: ``"zstd"``, or None.
        raw_size: The size of the safetensors file that it decompresses to, in bytes.
    """

    file: str
    size: int
    sha256: str
    compression: str | None
    raw_size: int


@dataclass(frozen=True)
class Manifest:
    """Everything that is known of one interaction, apart from tensor data.

    Attributes:
        step: The step it is filed under.
        step_kind: What the step counts, such as ``"trainer step"``.
        phase: ``"train"``, ``"val"``, ….
        index: Which of the step's interactions it is, counted from 0.
        rank: The process that recorded it.
        adapter: The adapter that recorded it.
        entry_point: The intercepted function, as ``module:Qualified.name``.
        versions: Versions of Python, this library, and what the batch came from.
        tensors: Where the tensors are.
        trees: The skeletons ``request`` (what was asked for), ``response`` (what the rollout
            engine produced) and ``random_state`` (the generators that the live call advanced, as
            they were after it).
        fingerprint: One SHA-256 (hex) per row of the request; None where requests aren't compared.
        omissions: The values that could not be stored.
        recorded_at: When the live call ended, ISO 8601, UTC.
        host: The machine that it ran on.
        seconds: How long the live call took.
        metadata: What the user gave to ``record(metadata=…)``.
    """

    step: int
    step_kind: str
    phase: str
    index: int
    rank: int
    adapter: str
    entry_point: str
    versions: dict[str, str]
    tensors: TensorsFile
    trees: Packed
    fingerprint: list[str] | None
    omissions: list[Omission]
    recorded_at: str
    host: str
    seconds: float
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The place of the interaction in its cassette."""
        return Key(self.step, self.phase, self.index, self.rank)

    @property
    def span(self) -> tuple[datetime, datetime]:
        """When the live call started, and when it ended."""
        ended = datetime.fromisoformat(self.recorded_at)
        return ended - timedelta(seconds=self.seconds), ended

    def to_bytes(self) -> bytes:
        """Return the manifest as it is on disk: one msgpack map that starts with its own hash."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        entries["tensors"] = asdict(self.tensors)
        entries["trees"] = asdict(self.trees)
        entries["omissions"] = [list(omission) for omission in self.omissions]
        head = {"sha256": _NO_DIGEST, "format": FORMAT, "version": VERSION}
        data = msgpack.packb({**head, **entries}, unicode_errors="surrogatepass")
        return _with_digest(data, hashlib.sha256(data).digest())

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Manifest:
        """Read a manifest.

        Args:
            data: The file's bytes.
            path: The file, for messages.

        Raises:
            CassetteCorruptError: If the bytes are not a whole, unaltered manifest.
            CassetteVersionError: If it was written by a newer version of the format.
        """
        try:
            entries = unpack_map(data)
            if entries.pop("format", None) != FORMAT:
                raise ValueError("it belongs to something else")  # noqa: TRY301 - reported below
            _check_digest(entries.pop("sha256", None), data)
            _check_version(entries.pop("version", None), path)
            entries["tensors"] = schema.build(TensorsFile, entries["tensors"])
            entries["trees"] = schema.build(Packed, entries["trees"])
            entries["omissions"] = [Omission(*omission) for omission in entries["omissions"]]
            manifest = schema.build(cls, entries)
            _check_span(manifest)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise damaged(path, f"it is no whole manifest ({error})") from error
        return manifest


def _with_digest(data: bytes, digest: bytes) -> bytes:
    """Return a manifest's bytes with another value in its first entry."""
    start = data.find(_DIGEST_ENTRY, 0, 16) + len(_DIGEST_ENTRY)
    return data[:start] + digest + data[start + len(digest) :]


def _check_digest(digest: Any, data: bytes) -> None:
    if digest != hashlib.sha256(_with_digest(data, _NO_DIGEST)).digest():
        raise ValueError("its contents are not what was written: SHA-256 differs")


def _check_version(version: Any, path: Path) -> None:
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}")
    if version > VERSION:
        raise CassetteVersionError(
            f"{path} is written in version {version} of the cassette format; this version of "
            f"rollout_cassettes reads up to version {VERSION}.",
            fixes=["Upgrade: pip install --upgrade rollout_cassettes"],
            path=path,
            found=version,
            known=VERSION,
        )


def _check_span(manifest: Manifest) -> None:
    _, ended = manifest.span
    if ended.tzinfo is None:
        raise ValueError(f"{manifest.recorded_at} has no offset")
