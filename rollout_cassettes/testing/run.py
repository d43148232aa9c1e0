"""What the author of an adapter gives: a run of the framework, ready to start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """A run that is ready to start, and is started once.

    Attributes:
        train: Makes the run, of two steps or more, and returns all that must be equal to the bit
            where it is replayed: weights, metrics. Any value that a cassette can hold. What differs
            between equal runs is left out: uids, durations.
        rollouts: Tells how many rollouts the engine has made for this run: prompts, requests or
            calls, whatever is easily counted. Asked after ``train``, also where that has raised.
    """

    train: Callable[[], Any]
    rollouts: Callable[[], int]


MakeRun = Callable[[], Run]
"""Builds a fresh trainer with a fresh engine, each time in the same initial state."""
