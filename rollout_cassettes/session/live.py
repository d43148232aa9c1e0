"""A call made live: what it asked for, what it gave, and what it took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette.tree import Omission, Split, split
from rollout_cassettes.patching import Call, Role
from rollout_cassettes.session.matching import fingerprint
from rollout_cassettes.session.random_state import RandomState

if TYPE_CHECKING:
    import torch


@dataclass
class Asked:
    """A request, as it was when its call was made: the call may change what it is given.

    Attributes:
        ordinal: Which of the requests it is that one sample answers; 0 of a whole call.
        value: What the adapter gave for it.
        parts: Its skeleton, and copies of its tensors.
        fingerprint: Its rows' fingerprints; None where they are not compared.
        seconds: How long its call took, if it was a submit.
        random_state: The generators that its call advanced, if it was a submit.
    """

    ordinal: int
    value: Any
    parts: Split
    fingerprint: list[str] | None
    seconds: float = 0.0
    random_state: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, adapter: Adapter, call: Call, ordinal: int = 0, *, strict: bool) -> Asked:
        """Take down what a call asks for.

        Raises:
            UnstorableValueError: If ``strict`` and a value of it can't be stored.
        """
        submits = call.point.role is Role.SUBMIT
        value = adapter.request(call)
        path = ("request", ordinal) if submits else ("request",)
        parts = split(value, *path, strict=strict)
        copies = {name: tensor.clone() for name, tensor in parts.tensors.items()}
        rows = adapter.rows([value] if submits else value)
        marks = None if rows is None else fingerprint(rows)
        return cls(ordinal, value, parts._replace(tensors=copies), marks)


@dataclass
class Waiting:
    """What waits for the interaction that it belongs to.

    Attributes:
        asked: The requests, oldest first.
        polls: What polls gave, oldest first.
    """

    asked: list[Asked] = field(default_factory=list)
    polls: list[Split] = field(default_factory=list)


class Content(NamedTuple):
    """What is written of a call.

    Attributes:
        skeletons: The skeletons of its trees, by name.
        tensors: The tensors of all of them, by path.
        omissions: What could not be stored.
    """

    skeletons: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    omissions: list[Omission]


class Lived(NamedTuple):
    """A call that was made live.

    Attributes:
        asked: The requests that it answers, oldest first.
        polls: What was given to polls before it, oldest first.
        result: What it returned.
        seconds: How long it took, without the submits before it.
        random_state: The generators that it advanced.
        ended: When it returned.
    """

    asked: Sequence[Asked]
    polls: Sequence[Split]
    result: Any
    seconds: float
    random_state: dict[str, Any]
    ended: datetime

    def total_seconds(self) -> float:
        """Return how long the interaction took, submits included."""
        return self.seconds + sum(each.seconds for each in self.asked)

    def content(self, adapter: Adapter, call: Call, *, strict: bool) -> Content:
        """Return what is to be written of it.

        Raises:
            UnstorableValueError: If ``strict`` and a value of the response can't be stored.
        """
        role = call.point.role
        response = adapter.capture(call, self.result, [each.value for each in self.asked])
        parts = split(response, "response", strict=strict)
        states = split(self._states(role), "random_state")
        requests = [each.parts.skeleton for each in self.asked]
        every = [*(each.parts for each in self.asked), *self.polls, parts, states]
        skeletons = {
            "request": requests if role is Role.SAMPLE else requests[0],
            "response": parts.skeleton,
            "random_state": states.skeleton,
        }
        if self.polls:
            skeletons["polls"] = [poll.skeleton for poll in self.polls]
        return Content(
            skeletons,
            {name: tensor for part in every for name, tensor in part.tensors.items()},
            [omission for part in every for omission in part.omissions],
        )

    def _states(self, role: Role) -> dict[str, dict[str, Any]]:
        """Return the generators that moved, by the part of the interaction that moved them."""
        submits = {name: state for each in self.asked for name, state in each.random_state.items()}
        parts = {Role.SUBMIT.value: submits, role.value: self.random_state}
        return {part: moved for part, moved in parts.items() if moved}

    def fingerprint(self) -> list[str] | None:
        """Return the fingerprints of all requests' rows; None where they are not compared."""
        marks = [each.fingerprint for each in self.asked]
        if not marks or any(mark is None for mark in marks):
            return None
        return [row for mark in marks for row in mark or ()]


class Stopwatch:
    """What a live call took, and what it did to the random generators; made just before it."""

    def __init__(self) -> None:
        self._before = RandomState.now()
        self._started = time.perf_counter()

    def seconds(self) -> float:
        """Return how long ago it was made."""
        return time.perf_counter() - self._started

    def advanced(self) -> dict[str, Any]:
        """Return the states of the generators that moved since it was made."""
        return RandomState.now().advanced_since(self._before)
