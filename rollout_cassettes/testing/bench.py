"""An adapter on the bench: runs of its framework, inside sessions and without."""

from __future__ import annotations

import functools
import random
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette import Cassette, Key
from rollout_cassettes.cassette.tree import split
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.session import Session, record, replay
from rollout_cassettes.session.difference import describe, first_difference
from rollout_cassettes.session.random_state import RandomState
from rollout_cassettes.testing.run import MakeRun
from rollout_cassettes.testing.standing import Standing, standing
from rollout_cassettes.testing.watch import Watch

_SEED = 20_26

_MORE = 3
"""How many more live runs are made to see whether live runs are equal."""


class NotApplicableError(Exception):
    """A check can't be made of this adapter, or of this run."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        name: What the run is called in messages.
        result: What it returned; None where it raised.
        error: What it raised.
        rollouts: How many rollouts the engine made.
        generators: The random generators at its end.
        changed: The entry points that are not what they were before the run.
        watch: What went live.
        session: The session that was open; None where there was none.
    """

    name: str
    result: Any
    error: Exception | None
    rollouts: int
    generators: dict[str, Any]
    changed: list[Standing]
    watch: Watch
    session: Any

    def ended(self) -> Outcome:
        """Return it, if the run came to its end.

        Raises:
            AssertionError: If it didn't.
        """
        if self.error is not None:
            error = self.error
            told = f"{self.name} raised {type(error).__name__}: {error}"
            raise AssertionError(told) from error
        return self

    def played(self, steps: Iterable[int]) -> Outcome:
        """Return it, if it came to its end and these are the steps that were replayed."""
        played = self.ended().session.played
        wanted = sorted(set(steps))
        require(played == wanted, f"{self.name} replayed the steps {played}, and not {wanted}")
        return self


def require(truth: bool, otherwise: str) -> None:
    """Raise what a check found wrong.

    Raises:
        AssertionError: If it isn't true.
    """
    if not truth:
        raise AssertionError(otherwise)


def require_equal(first: Outcome, second: Outcome) -> None:
    """Hold the results of two runs against each other, to the bit.

    Raises:
        AssertionError: Saying where they differ first.
    """
    found = difference(first.ended().result, second.ended().result)
    require(not found, f"{first.name} and {second.name} differ: train(){found}")


def difference(first: Any, second: Any) -> str:
    """Say where two values differ first; nothing where they are equal to the bit."""
    return "" if first_difference(first, second) is None else describe(first, second)


class Bench:
    """Makes runs, and those that several checks look at just once.

    Args:
        adapter: The adapter.
        make_run: Makes a run.
        make_other: Makes a run that asks for other prompts; None where there is none.
        directory: Where cassettes go.
    """

    def __init__(
        self, adapter: Adapter, make_run: MakeRun, make_other: MakeRun | None, directory: Path
    ) -> None:
        self.adapter = adapter
        self.make_other = make_other
        self._make_run = make_run
        self._directory = directory
        self._copies = 0

    # ---- runs

    def run(
        self,
        name: str,
        session: Session | None = None,
        *,
        make: MakeRun | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Make a run inside a session, with a watch around it."""
        return self._run(name, session, make or self._make_run, watch or Watch(self.adapter))

    def _run(self, name: str, session: Any, make: MakeRun, watch: Any) -> Outcome:
        _seed()
        run = make()
        _seed()  # those too that were imported just now
        before = standing(self.adapter.entry_points)
        result = error = None
        try:
            with watch, session or nullcontext():
                result = run.train()
        except Exception as raised:  # noqa: BLE001 - it is what a check looks at
            error = raised
        generators = RandomState.now().states
        changed = [each for each in before if each.is_changed]
        rollouts = run.rollouts()
        return Outcome(name, result, error, rollouts, generators, changed, watch, session)

    def record(self, name: str, path: Path, **options: Any) -> Outcome:
        """Make a run that is recorded; all of its phases unless told otherwise."""
        options = {"phases": self.phases, **options}
        return self.run(name, record(path=path, adapters=self.adapter, **options))

    def replay(self, name: str, path: Path, make: MakeRun | None = None, **given: Any) -> Outcome:
        """Make a run that is replayed; all of its phases unless told otherwise."""
        options = {"phases": self.phases, **given}
        return self.run(name, replay(path=path, adapters=self.adapter, **options), make=make)

    # ---- runs that several checks look at

    @functools.cached_property
    def plain(self) -> Outcome:
        """A run on which nobody looks: no entry point is patched."""
        nobody: Any = nullcontext()
        return self._run("the run without a session", None, self._make_run, nobody).ended()

    @functools.cached_property
    def watched(self) -> Outcome:
        """A run without a session, of which it is seen what it asks for."""
        outcome = self.run("a second run without a session").ended()
        require(
            len(outcome.watch.places) > 1,
            f"the run made {len(outcome.watch.places)} calls of the adapter's entry points, and two "
            "are needed: give it two steps or more, and see that it goes through "
            f"{', '.join(str(point) for point in self.adapter.entry_points if point.claim)}",
        )
        split(
            outcome.result, "train()", strict=True, portable=True
        )  # else nothing could be compared
        require(outcome.rollouts > 0, "rollouts() is 0 after a run without a session")
        return outcome

    @functools.cached_property
    def recorded(self) -> Outcome:
        """A run that is recorded as a whole."""
        return self.record("the recorded run", self.path, on_unstorable="error")

    @functools.cached_property
    def replayed(self) -> Outcome:
        """A run that comes from the cassette as a whole."""
        path = self.cassette().path
        return self.replay("the replay", path, on_unplayed="error")

    @functools.cached_property
    def is_reproducible(self) -> bool:
        """Whether two runs without a session are equal."""
        return not difference(self.plain.result, self.watched.result)

    def require_equal_live(self, first: Outcome, second: Outcome) -> None:
        """Hold two runs against each other that were live in part, where live runs are equal.

        Raises:
            AssertionError: Saying where they differ first.
        """
        if not self.is_reproducible or not difference(first.ended().result, second.ended().result):
            return
        for _ in range(_MORE):  # threads that race come out alike often enough to deceive
            other = self.run("another run without a session").ended()
            if difference(self.plain.result, other.result):
                self.is_reproducible = False
                return
        require_equal(first, second)

    def require_reproducible(self) -> None:
        """Leave a check out for which two live runs have to be equal.

        Raises:
            NotApplicableError: If they aren't.
        """
        if not self.is_reproducible:
            raise NotApplicableError("two runs without a session are not equal")

    @property
    def phases(self) -> list[str]:
        """The phases of the run's calls."""
        phases: list[str] = self.watched.watch.phases
        return phases

    # ---- cassettes

    @property
    def path(self) -> Path:
        """Where the whole run is recorded."""
        return self._directory / "whole"

    def cassette(self, *, numpy: bool = False) -> Cassette:
        """Return the whole run."""
        self.recorded.ended()
        return Cassette(self.path, numpy=numpy)

    @property
    def keys(self) -> list[Key]:
        """What the whole run consists of."""
        return self.cassette().keys

    @property
    def steps(self) -> list[int]:
        """Its steps."""
        return sorted({key.step for key in self.keys})

    def new_path(self) -> Path:
        """Return a place for a cassette."""
        self._copies += 1
        return self._directory / f"cassette-{self._copies}"

    def copy(self, keeps: Callable[[Key], bool]) -> Path:
        """Return a cassette with a part of the whole run."""
        keys, path = self.keys, self.new_path()
        shutil.copytree(self.path, path)
        with Writer(path) as writer:
            for key in keys:
                if not keeps(key):
                    writer.remove(key)
        return path


def _seed() -> None:
    """Let a run start with the random generators that the others start with."""
    random.seed(_SEED)
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        numpy.seed(_SEED)
    if torch is not None:
        torch.manual_seed(_SEED)
