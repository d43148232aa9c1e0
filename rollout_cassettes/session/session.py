"""What recorders and players have in common: one active with-block."""

from __future__ import annotations

import logging
import threading
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from rollout_cassettes.adapters import Adapter, Place, registered
from rollout_cassettes.adapters.registry import marked
from rollout_cassettes.cassette import Key
from rollout_cassettes.patching import Answer, Call, EntryPoint, activate, deactivate
from rollout_cassettes.session.steps import Steps
from rollout_cassettes.session.summary import Summary

logger = logging.getLogger("rollout_cassettes")


class Session(ABC):
    """One with-block: while it is open, it answers the calls of its adapters' entry points.

    A session can be opened once. Threads and asyncio tasks share it.

    Args:
        path: The cassette's directory.
        steps: The steps that it covers; calls of others pass through.
        adapters: The adapters that it uses; None for all that are known.
    """

    def __init__(self, path: Path, steps: Steps, adapters: list[Adapter] | None) -> None:
        self.path = path
        self.selection = steps
        self._adapters = adapters
        self._points: dict[EntryPoint, Adapter] = {}
        self._state = "new"
        self._step: int | None = None
        self._calls: Counter[tuple[str, str]] = Counter()
        self._reserved: Counter[Place] = Counter()
        self._lock = threading.Lock()

    # ---- what users see

    @property
    def step(self) -> int | None:
        """The current step, for loops whose calls don't say it; set it at the top of each step."""
        return self._step

    @step.setter
    def step(self, step: int) -> None:
        if isinstance(step, bool) or not hasattr(step, "__index__") or step < 0:
            raise ValueError(f"a step is a whole number, 0 or more; got {step!r}")
        self._step = int(step)

    @property
    def played(self) -> list[int]:
        """Steps that came from the cassette."""
        return self.summary().played

    @property
    def generated(self) -> list[int]:
        """Steps that went live during a replay and were not kept."""
        return self.summary().generated

    @property
    def recorded(self) -> list[int]:
        """Steps that were recorded."""
        return self.summary().recorded

    @property
    def missing(self) -> list[int]:
        """Steps that were wanted and are not in the cassette."""
        return self.summary().missing

    @property
    def unplayed(self) -> list[int]:
        """Recorded steps that were selected and never asked for."""
        return self.summary().unplayed

    @abstractmethod
    def summary(self) -> Summary:
        """Return what the session has done so far."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.path}, steps {self.selection.text}, {self._state}: {self}>"

    # ---- life

    def __enter__(self) -> Self:
        if self._state != "new":
            raise RuntimeError(f"this session is {self._state}: make a new one for each with-block")
        self._points = _points_of(self._adapters)
        self._open()
        try:
            activate(self, self._points)
        except BaseException:
            self._close(failed=True)
            raise
        self._state = "open"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._state = "closed"
        deactivate(self, self._points)
        self._close(failed=error is not None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        if getattr(self, "_state", None) == "new":
            warnings.warn(
                f"a session for {self.path} was made and never opened: nothing is recorded or "
                "replayed outside a with-block",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    # ---- what recorders and players decide

    @abstractmethod
    def _open(self) -> None:
        """Open what the session needs; called before anything is patched."""

    @abstractmethod
    def _close(self, *, failed: bool) -> None:
        """Close it, and say what happened; ``failed`` where an exception ended the block."""

    @abstractmethod
    def _answer(self, adapter: Adapter, call: Call, place: Place) -> Answer:
        """Answer a call of a step that the session covers."""

    def _place_failed(self, call: Call, error: Exception) -> None:
        """Deal with an adapter that can't say where a call belongs."""
        logger.debug("%s: the adapter can't say where the call belongs", call.point)
        raise error

    # ---- answering

    def handle(self, call: Call) -> Answer:
        """Answer a call of an entry point; see :mod:`rollout_cassettes.patching`."""
        adapter = self._adapter_of(call.point)
        place = None if adapter is None else self._place(adapter, call)
        if adapter is None or place is None or not self._covers(place):
            return (yield)
        return (yield from self._answer(adapter, call, place))

    def _adapter_of(self, point: EntryPoint) -> Adapter | None:
        if point in self._points:
            return self._points[point]
        return marked(point) if self._adapters is None else None

    def _place(self, adapter: Adapter, call: Call) -> Place | None:
        try:
            place = adapter.place(call)
        except Exception as error:  # noqa: BLE001 - the adapter may run code of the user's
            self._place_failed(call, error)
            return None
        if place is None or place.step is not None:
            return place
        with self._lock:
            self._calls[adapter.name, place.phase] += 1
            counted = self._calls[adapter.name, place.phase]
        return place._replace(step=counted if self._step is None else self._step)

    def _covers(self, place: Place) -> bool:
        return place.step is not None and self.selection.covers(place.step)

    def _next(self, place: Place) -> Key:
        """Return the key that the next interaction at a place gets, without reserving it."""
        with self._lock:
            return _key(place, self._reserved[place])

    def _reserve(self, place: Place) -> Key:
        """Reserve the next key at a place, when a call starts."""
        with self._lock:
            self._reserved[place] += 1
            return _key(place, self._reserved[place] - 1)

    def _give_back(self, place: Place, key: Key) -> None:
        """Give a reserved key back, if no later one was reserved since: its call failed."""
        with self._lock:
            if self._reserved[place] == key.index + 1:
                self._reserved[place] -= 1


def steps_of(keys: Iterable[Key]) -> list[int]:
    """Return the steps of interactions, in order."""
    return sorted({key.step for key in keys})


def _key(place: Place, index: int) -> Key:
    assert place.step is not None  # noqa: S101 - a place without a step is not covered
    return Key(place.step, place.phase, index, place.rank)


def _points_of(adapters: list[Adapter] | None) -> dict[EntryPoint, Adapter]:
    chosen = list(registered().values()) if adapters is None else adapters
    return {point: adapter for adapter in chosen for point in adapter.entry_points}
