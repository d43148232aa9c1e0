"""What a session did, in figures and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout_cassettes.display.amounts import readable_bytes, readable_seconds
from rollout_cassettes.errors import named_steps


@dataclass(frozen=True)
class Summary:
    """What a session did.

    Attributes:
        played: Steps that came from the cassette.
        generated: Steps that went live during a replay and were not kept.
        recorded: Steps that were recorded.
        missing: Steps that were wanted, and are not or not wholly in the cassette.
        unplayed: Recorded steps that were selected and never asked for.
        faults: Why a call could not be recorded, by what it was: ``{"step 2": "OSError: …"}``.
        omissions: The values that a recording had to leave out, by what it was a recording of:
            ``{"step 2": ["response/extra (a my_project.Extra)"]}``. It can't be replayed.
        seconds: How long the live calls took that were recorded, or that a replay saved.
        nbytes: What was written, in bytes.
    """

    played: list[int] = field(default_factory=list)
    generated: list[int] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    unplayed: list[int] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    omissions: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    nbytes: int = 0

    def of_recording(self) -> str:
        """Say what a recording did."""
        size, time = readable_bytes(self.nbytes), readable_seconds(self.seconds)
        text = f"{_count(self.recorded)} recorded, {size}, {time} of generation kept"
        return text + self._complaints()

    def of_replay(self) -> str:
        """Say what a replay did."""
        parts = [f"{_count(self.played)} replayed", f"{len(self.generated)} generated live"]
        if self.recorded:
            parts.append(f"{len(self.recorded)} newly recorded")
        parts.append(f"{readable_seconds(self.seconds)} of generation saved")
        return ", ".join(parts) + self._complaints()

    def _complaints(self) -> str:
        told = [f"{what} was not recorded ({cause})" for what, cause in self.faults.items()]
        for what, values in self.omissions.items():
            told.append(f"{what} was recorded without {', '.join(values)}")
        if self.missing:
            told.append(f"missing: {named_steps(self.missing)}")
        if self.unplayed:
            told.append(f"not asked for: {named_steps(self.unplayed)}")
        return "".join(f"; {each}" for each in told)


def _count(steps: list[int]) -> str:
    return "1 step" if len(steps) == 1 else f"{len(steps)} steps"
