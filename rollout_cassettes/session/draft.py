"""A cassette that is recorded beside the one whose place it is to take."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from rollout_cassettes.cassette import Key, reads
from rollout_cassettes.cassette.fresh import beside
from rollout_cassettes.cassette.rank import own_rank
from rollout_cassettes.errors import CassetteError, CassetteWriteError
from rollout_cassettes.session.faults import not_writable
from rollout_cassettes.session.session import logger
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.tape import Tape


class Draft:
    """A directory beside a cassette, which takes its place if all that was to be recorded is in it.

    The cassette stays as it is where the block ends in an exception, and where nothing was recorded, or
    not all of it. What else is in its directory, such as other cassettes, stays in any case.

    Args:
        path: The cassette's directory.
        copied: Begin with what the cassette holds; else with nothing.
        strict: Raise where the draft can't take the cassette's place, instead of logging it.

    Attributes:
        directory: Where to record.
    """

    def __init__(self, path: Path, *, copied: bool, strict: bool) -> None:
        self._target = path.resolve()  # a link stays, and what it points to is replaced
        self.directory = beside(self._target, "draft")
        self._copied = copied
        self._strict = strict
        self._claim: Tape | None = None

    def open(self) -> None:
        """Take hold of the cassette: nobody else is to write what will be replaced.

        Raises:
            CassetteError: If this is one of several processes of a run.
            CassetteInUseError: If another session writes to it.
            CassetteWriteError: If it can't be copied; or if it can't be written to, and ``strict``.
        """
        if own_rank() is not None:
            raise CassetteError(
                f"{self._target} can't be replaced by several processes at once: each would put "
                "its own part in the place of the whole.",
                fixes=["Record into it: any other record_mode than 'rewrite', on_failure='keep'."],
            )
        if self._target.exists():
            self._claim = Tape(self._target, None, strict=self._strict, metadata={})
            if self._copied:
                self._copy()

    def close(self, summary: Summary, *, failed: bool) -> None:
        """Let the draft take the cassette's place, or be gone.

        Args:
            summary: What was recorded.
            failed: Whether the block ended in an exception.

        Raises:
            CassetteWriteError: If it can't take its place, and ``strict``.
        """
        is_whole = not (summary.faults or summary.omissions)
        try:
            if summary.recorded and is_whole and not failed:
                self._swap()
            elif self.directory.exists() and not (self._copied and is_whole and not failed):
                why = "the block failed" if failed else "the new recording is not whole"
                logger.warning("%s stays as it was: %s", self._target, why)
        except OSError as error:
            if self._strict:
                raise not_writable(self._target, None, error) from error
            logger.warning("%s stays as it was: %s", self._target, error)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            if self._claim is not None:
                self._claim.close()

    def _copy(self) -> None:
        try:
            shutil.copytree(self._target, self.directory, ignore=_not_own)
        except OSError as error:
            raise CassetteWriteError(
                f"{self._target} can't be copied, to be kept as it is where the block fails: {error}.",
                fixes=[
                    "Look at the permissions of its files and of the directory that it is in.",
                    "Record into it, whether or not the block fails: on_failure='keep'.",
                ],
                path=self._target,
                step=None,
                phase=None,
            ) from error

    def _swap(self) -> None:
        """Let the draft take the cassette's place."""
        if not self._target.exists():
            self.directory.rename(self._target)
            return
        old = beside(self._target, "old")
        others = _not_own(self._target, [entry.name for entry in self._target.iterdir()])
        self._target.rename(old)
        with ExitStack() as undo:
            undo.callback(old.rename, self._target)
            self.directory.rename(self._target)
            undo.callback(self._target.rename, self.directory)
            for name in others:
                (old / name).rename(self._target / name)
                undo.callback((self._target / name).rename, old / name)
            undo.pop_all()
        shutil.rmtree(old, ignore_errors=True)


def _not_own(directory: str | os.PathLike[str], names: Iterable[str]) -> set[str]:
    """Return the names of what is in a cassette's directory, and is no part of the cassette."""
    return {name for name in names if not _is_own(name) or Path(directory, name).is_dir()}


def _is_own(name: str) -> bool:
    """Tell whether a file's name is one that a cassette has, or gives while it writes."""
    return name.startswith((reads.NAME, f".{reads.NAME}.")) or Key.from_file(name) is not None
