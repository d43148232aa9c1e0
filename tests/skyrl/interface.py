"""Stands in for `skyrl.train.generators.base`, as skyrl 0.4.0 published it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any


@dataclass
class TrajectoryID:
    instance_id: str
    repetition_id: int


@dataclass
class BatchMetadata:
    global_step: int
    training_phase: str


class GeneratorInterface(ABC):
    @abstractmethod
    async def generate(self, input_batch: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError
