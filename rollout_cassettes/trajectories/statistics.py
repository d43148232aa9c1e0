"""What a batch of trajectories comes to, in figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rollout_cassettes.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Statistics:
    """Figures of a batch; those for which the recording holds nothing are None.

    Attributes:
        rows: How many trajectories there are.
        groups: How many prompts they answer.
        prompt_tokens: How many tokens all prompts have, each counted as often as it was answered.
        response_tokens: How many tokens all responses have.
        scored: How many trajectories have a score.
        reward: The mean of the scores.
        reward_std: Their standard deviation.
        reward_min: The smallest of them.
        reward_max: The largest of them.
    """

    rows: int = 0
    groups: int | None = None
    prompt_tokens: int | None = None
    response_tokens: int | None = None
    scored: int = 0
    reward: float | None = None
    reward_std: float | None = None
    reward_min: float | None = None
    reward_max: float | None = None

    @classmethod
    def of(cls, trajectories: Iterable[Trajectory]) -> Statistics:
        """Count trajectories."""
        rows = list(trajectories)
        scores = [row.score for row in rows if row.score is not None]
        names = [row.group if row.uid is None else row.uid for row in rows]
        prompts = zip(rows, names, strict=True)
        groups = {(row.step, row.phase, name) for row, name in prompts if name is not None}
        mean = _mean(scores) if scores else None
        return cls(
            rows=len(rows),
            groups=len(groups) or None,
            prompt_tokens=_total([row.prompt_length for row in rows]),
            response_tokens=_total([row.response_length for row in rows]),
            scored=len(scores),
            reward=mean,
            reward_std=None if mean is None else math.sqrt(_mean(_squares(scores, mean))),
            reward_min=min(scores, default=None),
            reward_max=max(scores, default=None),
        )

    @property
    def response_length(self) -> float | None:
        """The mean length of a response, in tokens."""
        return None if self.response_tokens is None else self.response_tokens / self.rows


def _mean(values: Sequence[float]) -> float:
    """Return the mean: infinite or NaN where that is what adding the values makes."""
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):  # fsum refuses sums that are infinite or NaN
        return sum(values) / len(values)


def _squares(values: Sequence[float], mean: float) -> list[float]:
    """Return the squares of the distances to the mean; ``** 2`` would refuse one that is too large."""
    return [(value - mean) * (value - mean) for value in values]


def _total(lengths: Sequence[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return sum(known) if known else None
