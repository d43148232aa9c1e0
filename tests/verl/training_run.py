"""What a training did, whichever way it was run."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

import torch

from tests.verl.actor_batch import ActorBatch


class Requests(NamedTuple):
    """How many requests reached the LLM."""

    training: int
    validation: int


@dataclass(frozen=True)
class TrainingRun:
    """What a training did.

    Attributes:
        parameters: The trained model's parameters by name.
        optimizer_state: AdamW's state by parameter index.
        digests: The SHA-256 of all parameters by the trainer's step; 0 is before training.
        metrics: What verl logged, by step; 0 is the validation before training.
        actor_batches: What each `update_actor` was called with, in order.
        requests: How many requests reached the LLM.
        queue_left: The keys left in TransferQueue by partition; none after a tidy run.
        trainer: The trainer itself, after `fit()`.
    """

    parameters: dict[str, torch.Tensor]
    optimizer_state: dict[int, dict[str, torch.Tensor]]
    digests: dict[int, str]
    metrics: dict[int, dict[str, float]]
    actor_batches: list[ActorBatch]
    requests: Requests
    queue_left: dict[str, list[str]]
    trainer: Any


class MetricsLog:
    """The file that verl's own `file` logger writes.

    Args:
        path: The file.
    """

    def __init__(self, path):
        self._path = path

    @contextmanager
    def installed(self):
        """Let verl log to this file."""
        with mock.patch.dict(os.environ, {"VERL_FILE_LOGGER_PATH": str(self._path)}):
            yield

    def read(self):
        """Give the metrics by step."""
        lines = map(json.loads, self._path.read_text().splitlines())
        return {line["step"]: line["data"] for line in lines}
