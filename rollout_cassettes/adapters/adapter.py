"""What an adapter is: it knows one framework, and nothing of files, modes or policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rollout_cassettes.adapters.excerpt import (
    Excerpt,
    Group,
    Skeletons,
    columnar_excerpt,
    columnar_groups,
    columns_of,
    without,
)
from rollout_cassettes.adapters.reading import Saw, refuse
from rollout_cassettes.cassette.key import TRAIN, Key
from rollout_cassettes.cassette.rank import own_rank
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint
from rollout_cassettes.trajectories import Trajectory, read


class Place(NamedTuple):
    """Where a call belongs.

    Attributes:
        step: The step it belongs to; None where the framework doesn't say: then the session's
            ``step`` counts, or else the number of calls so far, from 1.
        phase: ``"train"``, ``"val"``, or another lower-case word.
        rank: The process that makes it; None for this one's rank in a distributed run, 0 where
            there is just one process.
    """

    step: int | None
    phase: str = TRAIN
    rank: int | None = None

    def key(self, step: int) -> Key:
        """Return the key of the first interaction there."""
        rank = own_rank() if self.rank is None else self.rank
        return Key(step, self.phase, 0, rank or 0)


Compare = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], None]


def _nothing_to_compare(
    recorded: Sequence[Mapping[str, Any]], live: Sequence[Mapping[str, Any]]
) -> None: ...


class Exchange(NamedTuple):
    """What is recorded of an interaction.

    Attributes:
        request: What :meth:`Adapter.request` gave; for a pair, the list of what it gave for each
            submit, oldest first.
        response: What :meth:`Adapter.capture` gave.
        compare: What :meth:`Adapter.restore` calls with recorded and live rows that are no part
            of the request, because the framework asks for them while it rolls out. It does what
            the session does about a mismatch.
    """

    request: Any
    response: Any
    compare: Compare = _nothing_to_compare


class Adapter(ABC):
    """Declares a framework's entry points, and converts what passes through them.

    An adapter keeps no state: what a session needs to remember between the two halves of an
    interaction, it hands back to the adapter as ``submitted``.

    Attributes:
        name: Names the adapter in manifests and messages.
        step_kind: What its steps count, such as ``"trainer step"``.
        entry_points: What to intercept.
        distributions: The packages whose versions belong in the manifest.
        phases: The phases that a session covers which names none; None for all.
        by_default: Whether sessions use it that name no adapters, once it is registered.
        unobserved: Why it can't be observed which fields of a response are read; empty where it can.
    """

    name: str
    step_kind: str
    entry_points: tuple[EntryPoint, ...]
    distributions: tuple[str, ...] = ()
    phases: frozenset[str] | None = None
    by_default: bool = True
    unobserved: str = "its adapter does not do that"

    @abstractmethod
    def place(self, call: Call) -> Place | None:
        """Return where a call belongs; None for a call that is no rollout of this adapter's."""

    @abstractmethod
    def request(self, call: Call) -> Any:
        """Return what a call asks for, before it is made: of a whole call, or of a submit."""

    @abstractmethod
    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> Any:
        """Return what to record of the answer to a call that was made.

        Args:
            call: The call: a whole one, a sample or a poll.
            result: What it returned.
            submitted: The open requests, oldest first: of a whole call just its own; of a sample,
                what was submitted since the last one; of a poll, none.
        """

    @abstractmethod
    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what a call is to return, made from a recording.

        Args:
            call: The call: a whole one, a sample or a poll.
            recorded: The recording, of a poll without a request; its values may be changed.
            submitted: As for :meth:`capture`; what was submitted was withheld.
            shift: None where the recording is of the very step. In repeat mode, how many steps
                later than the recorded one the live step is: the recording is then fitted to the
                live request, by cycling through its prompts.
        """

    def withhold(self, call: Call, recorded: Sequence[Any], submitted: Sequence[Any]) -> Any:
        """Return what a submit or resubmit is to return when its request is not dispatched.

        Args:
            call: The call.
            recorded: The submits of the recording that will answer it, oldest first; none in
                repeat mode, and for a resubmit.
            submitted: Those that were withheld for it so far, oldest first, this one included;
                none for a resubmit.
        """
        raise NotImplementedError(f"{self.name} withholds nothing")

    def refill(self, call: Call, recorded: Sequence[Any]) -> None:
        """Make the submits that the framework makes while it samples.

        A replay does not sample, and so nothing would make them. They come before the session as
        calls of their own.

        Args:
            call: The sample.
            recorded: The submits of its recording for which none was made yet, oldest first.
        """

    def release(self, call: Call) -> None:
        """Dispatch what was withheld and no recording answered, before a submit that goes live.

        Args:
            call: The submit; or a resubmit, which dispatches it by itself: then it is no longer
                withheld.
        """

    def poll(self, call: Call) -> Any:
        """Return what a poll is to return that the recorded run did not make."""
        raise NotImplementedError(f"{self.name} polls nothing")

    def start(self, call: Call) -> Iterable[Place]:
        """Return where the calls of a run that starts will belong, as far as that is known.

        Raises:
            CassetteError: If the run can't go together with a session that uses this adapter.
        """
        return ()

    def idle(self, call: Call) -> Any:
        """Return what an engine's call is to return when there is no engine.

        Raises:
            CassetteError: If the framework can't do without.
        """
        raise CassetteError(
            f"{self.name} can't leave the engine out.", fixes=["Replay with engines='live'."]
        )

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]] | None:
        """Return the parts of a request that a replay must find equal, prompt by prompt.

        Returns:
            For each prompt its fields, without what differs between equal runs; None where
            requests of this adapter are not compared.
        """
        return None

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the trajectories of a recording, for people who look at it.

        Args:
            recorded: What was recorded as plain containers and numpy arrays: batches and objects
                are dicts, jagged tensors lists of arrays. The framework may not be installed.

        Returns:
            A trajectory for each row; none where the recording has no rows. By default what the
            columns' names tell.
        """
        return read(recorded.request, recorded.response)

    def watched(self, result: Any, saw: Saw) -> Any:
        """Return what a call is to return, such that it is seen which of its fields are read.

        Args:
            result: What :meth:`restore` gave.
            saw: Told the names of fields that are read.

        Raises:
            CassetteError: If that can't be observed, saying why.
        """
        refuse(self.name, self.unobserved)

    # ---- parts of a recording

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the prompts of a recording, each with its rows, in the order of the request.

        By default those of a response with a value for each row of the request.

        Raises:
            ValueError: If it has no rows that could be told apart; the message says why.
        """
        return columnar_groups(recorded)

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Return a recording with some of its prompts, such that it replays.

        Args:
            recorded: The recording.
            groups: The prompts that are kept, of those that :meth:`groups` gave.
            elsewhere: The uids of prompts that are kept in other interactions.

        Raises:
            ValueError: If it can't be cut; the message says why.
        """
        return columnar_excerpt(recorded, groups)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return the names of a response's fields that a replay can do without.

        By default the columns of a dict or a TensorDict; none where the response is neither.
        """
        return list(columns_of(recorded.response) or ())

    def without(self, recorded: Skeletons, names: Collection[str]) -> Any:
        """Return the response without the fields of these names.

        Raises:
            ValueError: If it has no fields; the message says so.
        """
        return without(recorded.response, names)
