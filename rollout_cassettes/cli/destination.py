"""Where a command writes to: a path of its own, there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from rollout_cassettes.errors import CassetteError


@contextmanager
def written(
    path: Path, *, overwrite: bool, suffixes: Collection[str] | None = None
) -> Iterator[Path]:
    """Give a path to write a file or a directory to; it takes its name when the block ends well.

    Args:
        path: What it is to be called.
        overwrite: Let it take the place of what is there, if that is alike.
        suffixes: Those of the files that are written to a directory; None to write a file.

    Raises:
        CassetteError: If there is something already, or it can't be written to.
    """
    if path.exists() and not overwrite:
        raise CassetteError(
            f"{path} is there already.",
            fixes=["Name another: --output PATH.", "Replace it: --overwrite."],
        )
    if path.exists() and not _is_alike(path, suffixes):
        raise CassetteError(
            f"{path} is not replaced: there is something else than what this command writes.",
            fixes=["Name another: --output PATH."],
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise CassetteError(f"{path} can't be written to: {error.strerror}.") from error
    try:
        made = scratch / path.name
        yield made
        if path.exists():
            path.rename(scratch / f"{path.name}.old")
        made.rename(path)
    except OSError as error:
        at = path if error.filename is None else Path(error.filename)
        if at != path and not at.is_relative_to(scratch):
            raise  # what is read is to blame, not what is written
        raise CassetteError(f"{path} can't be written to: {error}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_alike(path: Path, suffixes: Collection[str] | None) -> bool:
    """Tell whether what is there is what would be written: a directory may hold a cassette, or all of a home."""
    if suffixes is None or not path.is_dir():
        return path.is_file() and suffixes is None
    return all(below.is_dir() or below.suffix in suffixes for below in path.rglob("*"))
