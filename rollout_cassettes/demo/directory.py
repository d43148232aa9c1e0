"""The demo's directory: where its two processes leave files for each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["DemoDirectory"]


@dataclass(frozen=True)
class DemoDirectory:
    """The files of a demo.

    Args:
        root: The directory that they are in.
    """

    root: Path

    @property
    def assets(self) -> Path:
        """The directory of the toy task."""
        return self.root / "assets"

    @property
    def live_log(self) -> Path:
        """What verl logs in the live training: a line of JSON per step."""
        return self.root / "live.jsonl"

    @property
    def replayed_log(self) -> Path:
        """What verl logs in the replay; there as soon as it starts."""
        return self.root / "replayed.jsonl"

    @property
    def output(self) -> Path:
        """All output of both trainings."""
        return self.root / "output.log"

    @property
    def result(self) -> Path:
        """The result; there when both trainings ended well."""
        return self.root / "result.json"
