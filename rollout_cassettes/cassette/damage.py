"""The error for a file that can't be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollout_cassettes.errors import CassetteCorruptError

if TYPE_CHECKING:
    from pathlib import Path


def damaged(path: Path, what: str) -> CassetteCorruptError:
    """Return the error for a file that is not what was written.

    Args:
        path: The file.
        what: What is wrong with it, as the end of a sentence.
    """
    return CassetteCorruptError(
        f"{path} is damaged: {what}.",
        fixes=[
            "Fetch the cassette again from where it came (git checkout, git lfs pull).",
            "Delete the files of this step and record it again.",
        ],
        path=path,
    )
