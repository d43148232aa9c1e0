"""What recorders and players have in common: one active with-block."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex

from rollout_cassettes import patching
from rollout_cassettes.adapters import Adapter, Place, registered
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError, named_steps
from rollout_cassettes.patching import Answer, Call, EntryPoint, Role
from rollout_cassettes.session.notebook import bundle
from rollout_cassettes.session.numbering import Numbering
from rollout_cassettes.session.steps import Steps, step_number
from rollout_cassettes.session.summary import Summary

if TYPE_CHECKING:
    from typing_extensions import Self

    from rollout_cassettes.session.draft import Draft

logger = logging.getLogger("rollout_cassettes")


class Session(ABC):
    """One with-block: while it is open, it answers the calls of its adapters' entry points.

    A session can be opened once. Threads and asyncio tasks share it.

    Args:
        path: The cassette's directory.
        steps: The steps that it covers; calls of others pass through.
        adapters: The adapters that it uses; None for all that are known.
        phases: The phases that it covers; None leaves it to the adapters.
        draft: Where it records, if not in the cassette itself.

    Attributes:
        path: The cassette's directory.
        selection: The steps that it covers.
        was_asked: Whether a call of a step that it covers came.
        refusal: The first error that a call was refused with, which its caller may have swallowed.
    """

    def __init__(
        self,
        path: Path,
        steps: Steps,
        adapters: list[Adapter] | None,
        phases: frozenset[str] | None = None,
        draft: Draft | None = None,
    ) -> None:
        self.path = path
        self.selection = steps
        self.was_asked = False
        self.refusal: CassetteError | None = None
        self._adapters = adapters
        self._phases = phases
        self._draft = draft
        self._directory = path if draft is None else draft.directory
        self._points: dict[str, list[tuple[EntryPoint, Adapter]]] = {}
        self._unseen: list[EntryPoint] = []
        self._state = "new"
        self._process: int | None = None
        self._failed = True  # until the block ends well
        self._step: int | None = None
        self._calls = Numbering(first=1)
        self._passed: set[Key] = set()
        self._lock = threading.Lock()

    # ---- what users see

    @property
    def step(self) -> int | None:
        """The current step, for loops whose calls don't say it; set it at the top of each step.

        None, as at first, leaves it to the number of calls so far.
        """
        return self._step

    @step.setter
    def step(self, step: SupportsIndex | None) -> None:
        self._step = None if step is None else step_number(step)

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
        """Steps that were wanted, and are not or not wholly in the cassette."""
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

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return bundle(str(self.path), str(self), self.summary())

    # ---- life

    def __enter__(self) -> Self:
        if self._state != "new":
            raise RuntimeError(f"this session is {self._state}: make a new one for each with-block")
        self._state = "closed"  # and so it stays if it can't be opened
        self._points = {}
        for adapter in self._in_use():
            for point in adapter.entry_points:
                self._points.setdefault(point.target, []).append((point, adapter))
        try:
            if self._draft is not None:
                self._draft.open()
            self._open()
            patching.activate(self, self._entry_points())
        except BaseException:
            self._shut()
            raise
        self._state = "open"
        self._process = os.getpid()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._state != "open":
            return
        self._state = "closed"
        if os.getpid() != self._process:  # files and locks belong to the process that forked
            patching.deactivate(self, self._entry_points())
            return
        self._failed = error is not None
        self._unseen = patching.unseen(self._entry_points())
        try:
            patching.deactivate(self, self._entry_points())
        finally:
            self._shut()
        self._report()

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

    def _shut(self) -> None:
        """Close what is open."""
        try:
            self._close()
        finally:
            if self._draft is not None:
                self._draft.close(self.summary(), failed=self._failed)

    def _in_use(self) -> list[Adapter]:
        if self._adapters is not None:
            return self._adapters
        return [adapter for adapter in registered().values() if adapter.by_default]

    def _entry_points(self) -> list[EntryPoint]:
        return [point for pairs in self._points.values() for point, _ in pairs]

    # ---- what recorders and players decide

    @abstractmethod
    def _open(self) -> None:
        """Open what the session needs; called before anything is patched."""

    @abstractmethod
    def _close(self) -> None:
        """Close it, or as much of it as was opened."""

    @abstractmethod
    def _report(self) -> None:
        """Say what happened, and stay quiet about what an exception in flight explains."""

    @abstractmethod
    def _answer(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        """Answer a call of a step that the session covers.

        Args:
            adapter: Whose call it is.
            call: The call.
            place: The key of the first interaction there.
        """

    @abstractmethod
    def _prepare_live(self, adapter: Adapter, call: Call, place: Key) -> None:
        """Do what is to be done before a call goes live that the session does not cover."""

    def _start(self, adapter: Adapter, call: Call) -> None:
        """Let an adapter refuse a run that starts."""
        adapter.start(call)

    def _answer_engine(self, adapter: Adapter, call: Call) -> Answer:  # noqa: ARG002 - a hook
        """Let the rollout engine be started, or given new weights."""
        return (yield False)

    def _misplace(self, call: Call, error: Exception) -> None:
        """Deal with a call of which nobody can say to which step it belongs.

        Raises:
            CassetteError: Saying so.
        """
        raise CassetteError(
            f"A call of {call.point} can't be filed under a step of {self.path}: "
            f"{type(error).__name__}: {error}",
            fixes=["Mend what gives the step: step_of= and phase_of= of the adapter, or steps=."],
        ) from error

    # ---- answering

    def handle(self, call: Call) -> Answer:
        """Answer a call of an entry point; see :mod:`rollout_cassettes.patching.wrapper`."""
        try:
            return (yield from self._handle(call))
        except CassetteError as error:
            self.refusal = self.refusal or error
            raise

    def _handle(self, call: Call) -> Answer:
        for adapter, own in self._attributed(call):
            match own.point.role:
                case Role.START:
                    self._start(adapter, own)
                case Role.ENGINE:
                    return (yield from self._answer_engine(adapter, own))
                case _:
                    given = self._place(adapter, own)
                    if given is not None:
                        return (yield from self._answer_at(adapter, own, given))
        return (yield False)

    def _answer_at(self, adapter: Adapter, call: Call, given: Place) -> Answer:
        """Answer a call that belongs somewhere, or let it pass if that is not covered."""
        with self._numbered(adapter, given) as place:
            if not self._covers(adapter, call, given, place):
                self._prepare_live(adapter, call, place)
                return (yield True)
            self.was_asked = True
            return (yield from self._answer(adapter, call, place))

    def pass_over(self, call: Call) -> None:
        """Count a call that an inner session answered, so that the next one gets its own number."""
        for adapter, own in self._attributed(call):
            with suppress(Exception):  # what the adapter makes of an answered call is no matter
                place = adapter.place(own)
                if place is None:
                    continue
                if place.step is None:
                    with self._calls.reserved((adapter.name, place.phase)):
                        return
            return

    def why_unasked(self) -> str:
        """Say why no call of a step that it covers came, once the session is closed."""
        names = sorted({a.name for pairs in self._points.values() for _, a in pairs})
        if self._adapters is None:
            names.append("a marked function")
        of_steps = "" if self.selection.text == "all" else f" for the steps {self.selection.text}"
        why = [f"no call{of_steps} came through {' or '.join(names)}"]
        if self._passed:
            phases = sorted({key.phase for key in self._passed} - {TRAIN})
            of_phases = f", phase {' and '.join(phases)}" if phases else ""
            why.append(f"calls came for {named_steps(steps_of(self._passed))}{of_phases}")
        unseen = sorted({point.module for point in self._unseen if point.claim})
        if unseen:
            why.append(f"not imported while the session was open: {', '.join(unseen)}")
        if any("." not in point.qualname for point in self._entry_points() if point.claim):
            why.append("a module that imported a function by name before keeps the original")
        return "; ".join(why)

    def _attributed(self, call: Call) -> Iterator[tuple[Adapter, Call]]:
        """Go through the adapters whose call it may be, each with the call as one of its own."""
        if call.marked_by is not None:
            if self._adapters is None:
                yield call.marked_by, call
            return
        for point, adapter in self._points.get(call.point.target, ()):
            yield adapter, call.at(point)

    def _place(self, adapter: Adapter, call: Call) -> Place | None:
        """Return where a call belongs; None where it is none of the adapter's."""
        try:
            place = adapter.place(call)
            return None if place is None else _checked(place)
        except Exception as error:  # noqa: BLE001 - the adapter may run code of the user's
            self._misplace(call, error)
            return None

    @contextmanager
    def _numbered(self, adapter: Adapter, place: Place) -> Iterator[Key]:
        """Give a call without a step the session's, or its own number; failed calls don't count.

        Where a call belongs is from here on the key of the first interaction there.
        """
        if place.step is not None:
            yield place.key(place.step)
            return
        with self._calls.reserved((adapter.name, place.phase)) as number:
            yield place.key(number if self._step is None else self._step)

    def _selects(self, key: Key) -> bool:
        """Tell whether a recorded interaction is among what the session was told to cover."""
        in_phase = self._phases is None or key.phase in self._phases
        return in_phase and self.selection.covers(key.step)

    def _covers(self, adapter: Adapter, call: Call, given: Place, place: Key) -> bool:
        phases = adapter.phases if self._phases is None else self._phases
        try:
            covered = self.selection.covers(place.step)
        except Exception as error:  # noqa: BLE001 - the selection may be a function of the user's
            self._misplace(call, error)
            return False
        covered = covered and (phases is None or given.phase in phases)
        if not covered:
            self._passed.add(place)
        return covered


def steps_of(keys: Iterable[Key]) -> list[int]:
    """Return the steps of interactions, in order."""
    return sorted({key.step for key in keys})


def _checked(place: Place) -> Place:
    """Return a place that a file can be named for.

    Raises:
        TypeError: If the step is no whole number.
        ValueError: If the step is negative, or the phase is no lower-case word.
    """
    if not isinstance(place.phase, str):
        raise TypeError(f"a phase is a lower-case word such as 'train', got {place.phase!r}")
    step = None if place.step is None else step_number(place.step)
    _ = place.key(step or 0).stem
    return place._replace(step=step)
