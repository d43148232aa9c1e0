"""Writing interactions so that each is there whole, or not at all."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rollout_cassettes.cassette import tensors
from rollout_cassettes.cassette.key import Key
from rollout_cassettes.cassette.manifest import SUFFIX, Manifest, TensorsFile
from rollout_cassettes.cassette.rank import own_rank
from rollout_cassettes.errors import CassetteError, CassetteInUseError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from typing_extensions import Self

logger = logging.getLogger("rollout_cassettes")

_TEMPORARY = ".tmp"
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What file systems say to a request that they don't know for directories."""

_NO_LOCKS = _UNSUPPORTED | {errno.EBADF, errno.ENOLCK}
"""What they say that can't lock a directory, such as NFS (EBADF) and Lustre (ENOSYS)."""


class Writer:
    """The one writer of a cassette directory, in this process.

    Opening it makes the directory, locks it against other writers, and clears away what an
    interrupted writer left half-written. The lock goes when the writer is closed or its process
    ends, however that happens.

    The processes of a distributed run write together, each what is of its own rank; the first of
    them holds the lock for all.

    Args:
        path: The cassette's directory.
        compression: ``"zstd"``, or None to store tensors uncompressed.

    Raises:
        CassetteInUseError: If another session, here or in another process, writes to it.
        OSError: If the directory can't be made or written to.
    """

    def __init__(self, path: Path, compression: str | None = "zstd") -> None:
        self.path = path
        self.compression = compression
        self._rank = own_rank()
        _make(path)
        self._directory = os.open(path, os.O_RDONLY)
        try:
            if not self._rank:
                self._lock()
            self._clear_leftovers()
        except BaseException:
            self.close()
            raise

    def write(
        self,
        key: Key,
        data: dict[str, torch.Tensor],
        manifest: Callable[[TensorsFile], Manifest],
    ) -> Manifest:
        """Write one interaction; when this returns, it survives a crash of the machine.

        Args:
            key: The interaction's place. What is there already is replaced.
            data: The tensors by path; contiguous, on the CPU.
            manifest: Makes the manifest, given what it must say of the tensors file.

        Raises:
            CassetteError: If the place belongs to another process of the run.
            OSError: If the disk is full or the directory can't be written to.
        """
        if not self._owns(key):
            raise CassetteError(
                f"{key} is of rank {key.rank}, and this process has rank {self._rank}: each "
                "process of a distributed run records its own calls.",
                fixes=["Leave the rank to the session: Place(step, phase), without a rank."],
            )
        encoded, raw_size = tensors.encode(data, self.compression)
        entry = tensors.entry_of(key.stem, encoded, raw_size, self.compression)
        written = manifest(entry)
        with (
            self._prepared(entry.file, encoded) as tensors_file,
            self._prepared(key.stem + SUFFIX, written.to_bytes()) as manifest_file,
        ):
            self.remove(key)
            tensors_file.replace(self.path / entry.file)
            _sync(self._directory)
            manifest_file.replace(self.path / (key.stem + SUFFIX))
            _sync(self._directory)
        return written

    def exchange(self, written: Manifest, data: bytes) -> None:
        """Let an interaction have a tensors file of another name, with the same tensors; or a first one.

        It is there whole at any time: with the one file until its manifest is replaced, and with the
        other from then on.

        Args:
            written: The interaction's manifest from now on.
            data: The bytes of the tensors file that it names.

        Raises:
            OSError: If the disk is full or the directory can't be written to.
        """
        stem, entry = written.key.stem, written.tensors
        with (
            self._prepared(entry.file, data) as tensors_file,
            self._prepared(stem + SUFFIX, written.to_bytes()) as manifest_file,
        ):
            tensors_file.replace(self.path / entry.file)
            _sync(self._directory)
            manifest_file.replace(self.path / (stem + SUFFIX))
            _sync(self._directory)
        for name in {stem + suffix for suffix in tensors.SUFFIXES.values()} - {entry.file}:
            (self.path / name).unlink(missing_ok=True)
        _sync(self._directory)

    def remove(self, key: Key) -> None:
        """Take an interaction away: first its manifest, so that it is never there in part."""
        for suffix in (SUFFIX, *tensors.SUFFIXES.values()):
            with suppress(FileNotFoundError):
                (self.path / (key.stem + suffix)).unlink()
                _sync(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the directory free for other writers."""
        if self._directory >= 0:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(self._directory, fcntl.LOCK_UN)  # forked processes have copies
            os.close(self._directory)
            self._directory = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CassetteInUseError(
                f"{self.path} is open for writing in another session.",
                fixes=[
                    "Record into another directory: record(path=...).",
                    "Wait until the other with-block, or the other process, has ended.",
                ],
                path=self.path,
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning(
                "%s can't be locked, its file system doesn't do that (%s): make sure that nothing "
                "else records into it",
                self.path,
                error.strerror,
            )

    def _owns(self, key: Key) -> bool:
        """Tell whether a place is this process's to write to."""
        return self._rank is None or key.rank == self._rank

    def _clear_leftovers(self) -> None:
        for leftover in self.path.glob(f".step-*{_TEMPORARY}"):
            key = Key.from_file(leftover.name)
            if key is None or self._owns(key):
                leftover.unlink(missing_ok=True)

    @contextmanager
    def _prepared(self, name: str, data: bytes) -> Iterator[Path]:
        """Bring a file safely to the disk under a temporary name; take away what is left of it."""
        temporary = self.path / f".{name}.{secrets.token_hex(4)}{_TEMPORARY}"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def _make(path: Path) -> None:
    """Make a directory that survives a crash of the machine: with its entry in its parent."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        with suppress(PermissionError):  # it may be writable, and not readable
            parent = os.open(made.parent, os.O_RDONLY)
            try:
                _sync(parent)
            finally:
                os.close(parent)


def _sync(directory: int) -> None:
    """Bring what was made, renamed and removed in a directory to the disk."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
