"""A new cassette, which is there whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollout_cassettes.cassette.cassette import Cassette
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.errors import (
    CassetteNotFoundError,
    CassetteWriteError,
    StepExistsError,
    named_steps,
)

_LONGEST = 50
"""How many characters of a name are taken over: file systems take 255 bytes, and a character up to 4."""


def beside(path: Path, use: str) -> Path:
    """Return a hidden path beside another one, which is free.

    Args:
        path: The other one.
        use: What it is for, as a word.
    """
    return path.with_name(f".{path.name[:_LONGEST]}.{use}-{secrets.token_hex(4)}")


def refuse_existing(target: Path) -> None:
    """Refuse a place for a new cassette where there is something already.

    Raises:
        StepExistsError: If it is a cassette.
        CassetteWriteError: If it is a file, or a directory that is not empty.
    """
    try:
        steps = Cassette(target).steps
    except CassetteNotFoundError:
        steps = []
    if steps:
        raise StepExistsError(
            f"The cassette {target} already holds {named_steps(steps)}.",
            fixes=["Name a new directory."],
            path=target,
            steps=steps,
        )
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise CassetteWriteError(
            f"{target} is not empty.",
            fixes=["Name a new directory."],
            path=target,
            step=None,
            phase=None,
        )


@contextmanager
def fresh(target: Path, compression: str | None = "zstd") -> Iterator[Writer]:
    """Open a directory beside the target, which takes its place if the block ends well.

    Args:
        target: The cassette's directory, new or empty.
        compression: ``"zstd"``, or None to store tensors uncompressed.

    Raises:
        CassetteWriteError: If it can't be written to.
    """
    directory = beside(target, "new")
    try:
        writer = Writer(directory, compression)
        try:
            yield writer
        finally:
            writer.close()
        directory.rename(target)
    except OSError as error:
        raise CassetteWriteError(
            f"A cassette can't be written to {target}: {error}.",
            fixes=["Look at the directory's permissions, and at the space of its disk."],
            path=target,
            step=None,
            phase=None,
        ) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
