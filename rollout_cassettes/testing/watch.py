"""Stands where the engine stands: sees the calls that a session lets through, and may fail one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollout_cassettes import patching
from rollout_cassettes.adapters import Adapter, Place
from rollout_cassettes.patching import Answer, Call, EntryPoint, Role

if TYPE_CHECKING:
    from typing_extensions import Self

_ASKING = (Role.WHOLE, Role.SUBMIT)
_ANSWERING = (Role.WHOLE, Role.SAMPLE)


class EngineError(Exception):
    """What a live call raises that a watch fails."""


class Watch:
    """Is asked after the session, which is opened inside of it, about calls that are to go live.

    Args:
        adapter: Whose calls it watches.
        failing: Which of the calls that ask for rollouts is to raise, counted from 0; None for none.

    Attributes:
        places: Where the calls belong that asked for rollouts, in their order.
        phases: The phases of these, and of rollouts that were handed over without being asked for.
        answered: How many calls have given their responses.
        error: What was raised in the place of the engine.
    """

    def __init__(self, adapter: Adapter, failing: int | None = None) -> None:
        self.places: list[Place] = []
        self.phases: list[str] = []
        self.answered = 0
        self.error: EngineError | None = None
        self._adapter = adapter
        self._failing = failing

    def __enter__(self) -> Self:
        patching.activate(self, self._adapter.entry_points)
        return self

    def __exit__(self, *_exception: object) -> None:
        patching.deactivate(self, self._adapter.entry_points)

    def handle(self, call: Call) -> Answer:
        """Let a call go live, and take note of it."""
        point, place = self._placed(call)
        if place is None:
            return (yield False)
        if place.phase not in self.phases:
            self.phases.append(place.phase)
        if point.role in _ASKING:
            self.places.append(place)
            if len(self.places) - 1 == self._failing:
                self.error = EngineError("the engine was asked to fail")
                raise self.error
        live = yield False
        self.answered += point.role in _ANSWERING
        return live

    def pass_over(self, call: Call) -> None:
        """Do nothing about a call that the session has answered by itself."""

    def _placed(self, call: Call) -> tuple[EntryPoint, Place | None]:
        for point in self._adapter.entry_points:
            if point.target == call.point.target and point.role in {*_ASKING, *_ANSWERING}:
                return point, self._adapter.place(call.at(point))
        return call.point, None
