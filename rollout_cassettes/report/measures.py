"""Figures of trajectories, and of a step as a whole. What a recording doesn't hold is None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.records import reward_info

TRAINER_STEP = "trainer step"
"""The kind of step from which verl's versions of weights are counted."""

_FINISHED = ("finish_reason", "finish_reasons", "stop_reason")
_CUT = ("truncated", "is_truncated")
_RIGHT_OR_WRONG = ({0.0, 1.0}, {-1.0, 1.0})


@dataclass(frozen=True)
class Criteria:
    """What counts as passed, and as truncated, where the recording doesn't say.

    Attributes:
        pass_reward: The reward from which on a trajectory passes. None: known only where rewards
            are right or wrong, 0 or 1, -1 or 1.
        max_response_length: How many tokens a response may have; one that has as many was cut.
            None: the longest length of the cassette, where several responses have it.
    """

    pass_reward: float | None = None
    max_response_length: int | None = None


@dataclass(frozen=True)
class Spread:
    """How values lie.

    Attributes:
        mean: Their mean.
        std: Their standard deviation.
        low: The smallest.
        p10: A tenth of them are below.
        p25: A quarter.
        p50: Half of them.
        p75: Three quarters.
        p90: Nine tenths.
        high: The largest.
    """

    mean: float
    std: float
    low: float
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Measure what is known of values; None if nothing is."""
        import numpy as np  # noqa: PLC0415 - importing this library needs no numpy

        known = np.array([value for value in values if value is not None], np.float64)
        known = known[np.isfinite(known)]
        if not known.size:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # rewards may be as large as floats are
            quantiles = np.quantile(known, (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1))
            return cls(*map(brief, (known.mean(), known.std(), *quantiles)))


@dataclass(frozen=True)
class RowMeasures:
    """One trajectory in figures.

    Attributes:
        score: Its reward; None where that is infinite or NaN, which no chart has a place for.
        passed: Whether it is right: what its reward function said, else what its reward tells.
        tokens: How many tokens its response has.
        cut: Whether its response was ended by its length; None where only the length may tell.
        log_prob: The mean log-probability of the tokens that the model wrote, in nats.
        written: How many tokens these are.
        unlikely: How many of them had a probability below a tenth.
        lag: By how many updates the weights that ended it are older than those it trains.
    """

    score: float | None
    passed: bool | None
    tokens: int | None
    cut: bool | None
    log_prob: float | None
    written: int
    unlikely: int
    lag: int | None

    @classmethod
    def of(cls, row: Trajectory, step_kind: str, criteria: Criteria) -> RowMeasures:
        """Measure a trajectory.

        Args:
            row: The trajectory.
            step_kind: What the steps of its recording count.
            criteria: What counts as passed and as truncated.
        """
        log_prob, written, unlikely = _sampled(row)
        score = row.score if row.score is not None and math.isfinite(row.score) else None
        return cls(
            score=None if score is None else brief(score),
            passed=_passed(row, criteria),
            tokens=row.response_length,
            cut=_cut(row, criteria),
            log_prob=log_prob,
            written=written,
            unlikely=unlikely,
            lag=_lag(row) if step_kind == TRAINER_STEP else None,
        )


@dataclass(frozen=True)
class StepMeasures:
    """The trajectories of an interaction in figures.

    Attributes:
        rows: How many there are.
        groups: How many prompts they answer.
        reward: Their rewards.
        pass_rate: The share that is right.
        by_reward: Whether that was told by rewards being right or wrong.
        flat_groups: The share of prompts whose responses all have one reward: they teach nothing.
        length: The lengths of their responses, in tokens.
        longest: How many responses have the greatest length.
        truncated: The share of responses that was ended by its length.
        log_prob: The mean log-probability of each, in nats.
        entropy: The mean of minus the log-probability over all tokens that the model wrote, in
            nats: an estimate of the policy's entropy, as it is at the temperature of sampling.
        unlikely: The share of these tokens that had a probability below a tenth.
        lag: By how many updates the weights are older than those that are trained.
    """

    rows: int
    groups: int | None
    reward: Spread | None
    pass_rate: float | None
    by_reward: bool
    flat_groups: float | None
    length: Spread | None
    longest: int
    truncated: float | None
    log_prob: Spread | None
    entropy: float | None
    unlikely: float | None
    lag: Spread | None

    @classmethod
    def of(
        cls, rows: Sequence[Trajectory], measured: Sequence[RowMeasures], criteria: Criteria
    ) -> StepMeasures:
        """Measure the trajectories of an interaction, each of which is measured already."""
        scores = [each.score for each in measured if each.score is not None]
        passed = [each.passed for each in measured]
        by_reward = not any(each is not None for each in passed) and criteria.pass_reward is None
        if by_reward and scores and any(set(scores) <= pair for pair in _RIGHT_OR_WRONG):
            passed = [None if each.score is None else each.score > 0 for each in measured]
        lengths = [each.tokens for each in measured if each.tokens is not None]
        written = sum(each.written for each in measured)
        return cls(
            rows=len(rows),
            groups=len({row.group for row in rows if row.group is not None}) or None,
            reward=Spread.of(scores),
            pass_rate=_share(passed),
            by_reward=by_reward,
            flat_groups=_flat_groups(rows),
            length=Spread.of(lengths),
            longest=lengths.count(max(lengths)) if lengths else 0,
            truncated=_share([each.cut for each in measured]),
            log_prob=Spread.of(each.log_prob for each in measured),
            entropy=brief(
                -sum((each.log_prob or 0.0) * each.written for each in measured) / written
            )
            if written
            else None,
            unlikely=brief(sum(each.unlikely for each in measured) / written) if written else None,
            lag=Spread.of(each.lag for each in measured),
        )


def brief(value: float) -> float:
    """Return a figure to six digits: float32 has no more, and a file is shorter for it."""
    return float(f"{value:.6g}")


def _share(known: Sequence[bool | None]) -> float | None:
    told = [each for each in known if each is not None]
    return brief(sum(told) / len(told)) if told else None


def _flat_groups(rows: Sequence[Trajectory]) -> float | None:
    scores: dict[int, list[float]] = {}
    for row in rows:
        if row.group is not None and row.score is not None:
            scores.setdefault(row.group, []).append(row.score)
    several = [each for each in scores.values() if len(each) > 1]
    return _share([min(each) == max(each) for each in several])


def _sampled(row: Trajectory) -> tuple[float | None, int, int]:
    """Return the mean log-prob of what the model wrote, how much that is, and how much unlikely."""
    import numpy as np  # noqa: PLC0415

    if row.log_probs is None or not len(row.log_probs):
        return None, 0, 0
    values = row.log_probs.astype(np.float64)
    if row.mask is not None and len(row.mask) == len(values):
        values = values[row.mask != 0]
    values = values[np.isfinite(values)]
    if not values.size:
        return None, 0, 0
    return brief(values.mean()), int(values.size), int((values < np.log(0.1)).sum())


def _passed(row: Trajectory, criteria: Criteria) -> bool | None:
    if criteria.pass_reward is not None:
        return None if row.score is None else row.score >= criteria.pass_reward
    said = reward_info(row).get("acc")
    return None if not isinstance(said, (bool, int, float)) else said >= 1


def _cut(row: Trajectory, criteria: Criteria) -> bool | None:
    for fields in _fields(row):
        for name in _FINISHED:
            if isinstance(fields.get(name), str):
                return bool(fields[name] == "length")
        for name in _CUT:
            if isinstance(fields.get(name), bool):
                return bool(fields[name])
    if criteria.max_response_length is None or row.response_length is None:
        return None
    return row.response_length >= criteria.max_response_length


def _lag(row: Trajectory) -> int | None:
    """Return by how many updates a trajectory's weights are behind those that it trains.

    Source: verl 0.9.1, ``verl/trainer/ppo/v1/trainer_base.py``, ``trajectory_staleness``.
    """
    for fields in _fields(row):
        version = fields.get("max_global_steps")
        if isinstance(version, int):
            return row.step - 1 - version if version < row.step else None
    return None


def _fields(row: Trajectory) -> list[Mapping[str, Any]]:
    extra = row.metadata.get("extra_fields")
    return [row.metadata, extra] if isinstance(extra, Mapping) else [row.metadata]
