"""One interaction in figures: where it belongs, what it took, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_cassettes.trajectories.statistics import Statistics


@dataclass(frozen=True)
class Figures:
    """An interaction in figures.

    Attributes:
        step: The step that it is filed under.
        phase: ``"train"``, ``"val"``, ….
        index: Which of the step's interactions it is.
        rank: The process that recorded it.
        recorded_at: When the live call ended, ISO 8601, UTC.
        seconds: How long the live call took.
        nbytes: Its size on disk, in bytes.
        statistics: What its trajectories come to.
    """

    step: int
    phase: str
    index: int
    rank: int
    recorded_at: str
    seconds: float
    nbytes: int
    statistics: Statistics
