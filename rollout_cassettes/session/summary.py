"""What a session did, in figures and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout_cassettes.errors import spans

_MINUTE = 60
_KILO = 1000


@dataclass(frozen=True)
class Summary:
    """What a session did.

    Attributes:
        played: Steps that came from the cassette.
        generated: Steps that went live during a replay and were not kept.
        recorded: Steps that were recorded.
        missing: Steps that were wanted and are not in the cassette.
        unplayed: Recorded steps that were selected and never asked for.
        faults: Why steps could not be recorded, by the step's name.
        seconds: How long the live calls took that were recorded, or that a replay saved.
        nbytes: What was written, in bytes.
    """

    played: list[int] = field(default_factory=list)
    generated: list[int] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    unplayed: list[int] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    nbytes: int = 0

    def of_recording(self) -> str:
        """Say what a recording did."""
        size, time = readable_bytes(self.nbytes), readable_seconds(self.seconds)
        text = f"{_steps(self.recorded)} recorded, {size}, {time} of generation kept"
        return text + self._complaints()

    def of_replay(self) -> str:
        """Say what a replay did."""
        parts = [f"{_steps(self.played)} replayed", f"{len(self.generated)} generated live"]
        if self.recorded:
            parts.append(f"{len(self.recorded)} newly recorded")
        parts.append(f"{readable_seconds(self.seconds)} of generation saved")
        return ", ".join(parts) + self._complaints()

    def _complaints(self) -> str:
        text = ""
        if self.missing:
            text += f"; missing: steps {spans(self.missing)}"
        for name, cause in self.faults.items():
            text += f"; {name} was not recorded ({cause.splitlines()[0]})"
        if self.unplayed:
            text += f"; not asked for: steps {spans(self.unplayed)}"
        return text


def readable_seconds(seconds: float) -> str:
    """Write a duration: ``0.35 s``, ``12 m 31 s``, ``3 h 05 m``."""
    if seconds < _MINUTE:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes:02d} m"


def readable_bytes(count: float) -> str:
    """Write a size in decimal units: ``812 B``, ``4.4 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < _KILO:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KILO
    return f"{count:.1f} TB"


def _steps(steps: list[int]) -> str:
    return "1 step" if len(steps) == 1 else f"{len(steps)} steps"
