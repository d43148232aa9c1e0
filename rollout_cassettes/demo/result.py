"""What the demo found out: a live training and its replay, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DemoResult", "Requests", "StepResult", "differences"]


@dataclass(frozen=True)
class Requests:
    """How many requests reached the engine.

    Attributes:
        training: From training.
        validation: From validation, which stays live in a replay.
    """

    training: int
    validation: int


@dataclass(frozen=True)
class StepResult:
    """One training step, live and replayed.

    Attributes:
        step: The trainer's step.
        reward: The mean reward.
        loss: The policy-gradient loss.
        live_rollout: Seconds that the trainer waited for trajectories.
        replayed_rollout: Seconds that it waited in the replay.
        live_step: Seconds of the whole step.
        replayed_step: Seconds of the whole step in the replay.
        nbytes: What the step takes on disk, in bytes.
        differences: The metrics that are not equal to the bit, and `weights`.
    """

    step: int
    reward: float
    loss: float
    live_rollout: float
    replayed_rollout: float
    live_step: float
    replayed_step: float
    nbytes: int
    differences: list[str]

    @property
    def identical(self) -> bool:
        """Whether everything but the clock said the same."""
        return not self.differences


@dataclass(frozen=True)
class DemoResult:
    """A live training and its replay.

    Attributes:
        path: The cassette's directory.
        steps: The training steps.
        start_differences: What differed before the first step: the validation, or `weights`.
        recording: What the recording session said of itself.
        replay: What the replaying session said of itself.
        live_requests: How often the engine was asked in the live run.
        replayed_requests: How often it was asked in the replay.
        live_seconds: The whole live run, with starting its processes.
        replayed_seconds: The whole replay, with starting its processes.
    """

    path: str
    steps: list[StepResult]
    start_differences: list[str]
    recording: str
    replay: str
    live_requests: Requests
    replayed_requests: Requests
    live_seconds: float
    replayed_seconds: float

    @property
    def identical(self) -> bool:
        """Whether the replay was the live training, to the bit, without asking the engine."""
        return (
            not self.start_differences
            and all(step.identical for step in self.steps)
            and self.replayed_requests.training == 0
        )

    @property
    def speed_up(self) -> float:
        """How many times faster the trainer had its trajectories."""
        replayed = sum(step.replayed_rollout for step in self.steps)
        return sum(step.live_rollout for step in self.steps) / max(replayed, 1e-9)

    def to_json(self) -> str:
        """Write the result for machines."""
        derived = {"identical": self.identical, "speed_up": self.speed_up}
        return json.dumps({**asdict(self), **derived}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> DemoResult:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        del fields["identical"], fields["speed_up"]
        fields["steps"] = [StepResult(**step) for step in fields["steps"]]
        for name in ("live_requests", "replayed_requests"):
            fields[name] = Requests(**fields[name])
        return cls(**fields)


def differences(
    live: Mapping[str, Any], replayed: Mapping[str, Any], digests: tuple[str | None, str | None]
) -> list[str]:
    """Name the metrics of a step that are not equal to the bit, and `weights`.

    Left out is what comes from a clock or from the machine: `timing_s/…`,
    `timing_per_token_ms/…`, and whatever verl calls `perf/…`.

    Args:
        live: The metrics of the live step.
        replayed: The metrics of the replayed step.
        digests: The digests of the weights after the step, live and replayed.
    """
    missing = object()
    names = [
        name
        for name in sorted(live.keys() | replayed.keys())
        if not _measured(name) and live.get(name, missing) != replayed.get(name, missing)
    ]
    if digests[0] is None or digests[0] != digests[1]:
        names.append("weights")
    return names


def _measured(name: str) -> bool:
    return name.startswith("timing") or "perf/" in name
