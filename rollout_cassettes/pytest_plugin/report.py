"""Which cassettes a run used, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rollout_cassettes.display.amounts import readable_bytes, readable_seconds
from rollout_cassettes.errors import named_steps
from rollout_cassettes.session import Summary

REPLAYED, RECORDED, DISCARDED = "replayed", "recorded", "discarded"


@dataclass(frozen=True)
class Use:
    """A cassette that was open.

    Attributes:
        path: Its directory.
        test: The test's node id; None for a fixture.
        what: Whether it was replayed, recorded, or recorded and discarded.
        steps: The steps that were.
        seconds: How long their live calls took.
        nbytes: What was written, in bytes.
    """

    path: str
    test: str | None
    what: str
    steps: list[int]
    seconds: float
    nbytes: int

    @classmethod
    def of(cls, path: Path, test: str | None, summary: Summary, *, failed: bool) -> Use:
        """Return what came of a session.

        Args:
            path: The cassette's directory.
            test: The test's node id; None for a fixture.
            summary: What the session did.
            failed: Whether its block failed, so that what it recorded was discarded.
        """
        what = REPLAYED
        if summary.recorded:
            is_lost = failed or summary.faults or summary.omissions
            what = DISCARDED if is_lost else RECORDED
        steps = sorted({*summary.played, *summary.recorded})
        return cls(str(path), test, what, steps, summary.seconds, summary.nbytes)


class Report:
    """What came of the cassettes that were open.

    Args:
        root: What paths are shown relative to.

    Attributes:
        uses: The cassettes that were open, in order.
    """

    def __init__(self, root: Path) -> None:
        self.uses: list[Use] = []
        self._root = root

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain values, to be sent to another process."""
        return {"uses": [asdict(use) for use in self.uses]}

    def merge(self, told: Mapping[str, Any]) -> None:
        """Add what another process sent."""
        self.uses += [Use(**use) for use in told["uses"]]

    def lines(self) -> Iterator[str]:
        """Give the report's lines: the sums first."""
        yield ", ".join(self._sums()) or "no cassette was used"
        for use in sorted(self.uses, key=lambda use: (use.path, use.test or "")):
            steps = named_steps(use.steps) if use.steps else "nothing"
            yield f"{use.what:<9}  {shown(Path(use.path), self._root)}: {steps}{_size(use)}"

    def _sums(self) -> Iterator[str]:
        for what in (REPLAYED, RECORDED, DISCARDED):
            uses = [use for use in self.uses if use.what == what]
            if not uses:
                continue
            amount = ""
            if what == REPLAYED:
                seconds = sum(use.seconds for use in uses)
                amount = f" ({readable_seconds(seconds)} of generation saved)"
            if what == RECORDED:
                amount = f" ({readable_bytes(sum(use.nbytes for use in uses))})"
            yield f"{len(uses)} {what}{amount}"


def shown(path: Path, root: Path) -> str:
    """Return a path as people read it: relative, if it is under the root."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _size(use: Use) -> str:
    return f", {readable_bytes(use.nbytes)}" if use.what == RECORDED else ""
