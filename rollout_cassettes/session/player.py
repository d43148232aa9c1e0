"""The session that replays."""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rollout_cassettes.adapters import Adapter, Exchange
from rollout_cassettes.cassette import Cassette, Interaction, Key
from rollout_cassettes.cassette.cassette import not_found
from rollout_cassettes.cassette.device import device_named
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cassette.rank import own
from rollout_cassettes.errors import CassetteError, UnplayedError, named_steps, spans
from rollout_cassettes.patching import Answer, Call, Role
from rollout_cassettes.session import options
from rollout_cassettes.session.coverage import not_covered
from rollout_cassettes.session.draft import Draft
from rollout_cassettes.session.matching import Rows, fingerprint, mismatch
from rollout_cassettes.session.miss import Miss
from rollout_cassettes.session.playlist import Loop, Marks, Playlist
from rollout_cassettes.session.random_state import Generators, Span
from rollout_cassettes.session.reads import Reads
from rollout_cassettes.session.session import Session, logger, steps_of
from rollout_cassettes.session.steps import Steps, StepsArgument
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.tape import Line, Tape

if TYPE_CHECKING:
    import torch


def replay(
    steps: StepsArgument = None,
    mode: options.Mode = "cache",
    *,
    path: str | os.PathLike[str] | None = None,
    adapters: options.Adapters = None,
    phases: Iterable[str] | str | None = None,
    on_miss: options.OnMiss = "error",
    on_mismatch: options.OnMismatch = "error",
    on_unplayed: options.OnUnplayed = "ignore",
    engines: options.Engines = "live",
    restore_rng: bool = True,
    device: str | torch.device | None = None,
    track_reads: bool = False,
) -> Player:
    """Hand back what was recorded, while a with-block is open; the rollout engine is not called.

    Args:
        steps: The steps to replay: None for all, a number, numbers, ``"1-5,8"``, or a predicate.
            Calls of other steps go live.
        mode: ``"cache"`` replays exactly the step; ``"repeat"`` the nearest earlier step where it
            is not recorded, else the nearest later, cycling through its prompts where the live
            request has more of them.
        path: The cassette's directory; by default ``$ROLLOUT_CASSETTES_PATH``, else
            ``cassettes/default``.
        adapters: What to intercept: adapters, or their names such as ``"verl_v1"``; by default
            every framework that is, or gets, imported, and every function marked with
            :func:`rollout_cassettes.adapters.function`.
        phases: The phases to replay, such as ``("train", "val")``; by default training rollouts
            alone where an adapter knows of phases, and else every call. Others go live.
        on_miss: What to do where a step is not recorded: raise, generate it live, or generate it
            and record it into the same cassette.
        on_mismatch: What to do where the live prompts are not the recorded ones: raise, or log a
            warning and replay all the same. Repeat mode does not compare them.
        on_unplayed: What to do at the end where recorded steps were selected and never asked for.
        engines: ``"off"`` never starts the inference engine, for a run of which everything is
            recorded; open the block before the framework starts it. What is missing is an error at
            the start.
        restore_rng: Put random generators where the live call left them.
        device: Where tensors go; None for the device they were recorded on, or the CPU where that
            one is missing.
        track_reads: Learn which fields of the responses the run reads, for :func:`shrink`: in
            ``session.reads``, and, if the block ends well, in a file of the cassette. For functions
            that return a dict, which is then a subclass of dict, or a TensorDict; others are
            refused.

    Raises:
        ValueError: If an option's value is not one of those listed.
        TypeError: If an option is of the wrong type.
    """
    return Player(
        options.cassette_path(path),
        Steps.parse(steps),
        options.adapters(adapters),
        options.phases(phases),
        mode=options.word("mode", mode, options.Mode),
        on_miss=options.word("on_miss", on_miss, options.OnMiss),
        on_mismatch=options.word("on_mismatch", on_mismatch, options.OnMismatch),
        on_unplayed=options.word("on_unplayed", on_unplayed, options.OnUnplayed),
        engines=options.engines(engines, on_miss),
        restore_rng=options.truth("restore_rng", restore_rng),
        device=device_named(device),
        track_reads=options.truth("track_reads", track_reads),
    )


class Request(NamedTuple):
    """What is asked for during a replay.

    Attributes:
        values: What the adapter gave for it; for a pair, one for each submit, oldest first.
        rows: Its rows; None where they are not compared.
        marks: The rows' fingerprints; None where they are not compared.
    """

    values: Sequence[Any]
    rows: Rows | None
    marks: Marks


class Played(NamedTuple):
    """An interaction that came from the cassette."""

    step: int
    source: Key
    seconds: float


class Player(Session):
    """Answers the calls of its steps from a cassette. Made by :func:`replay`.

    The options are those of :func:`replay`, and those of :func:`record` for what it records where
    ``on_miss`` is ``"record"``.
    """

    def __init__(
        self,
        path: Path,
        steps: Steps,
        adapters: list[Adapter] | None,
        phases: frozenset[str] | None = None,
        draft: Draft | None = None,
        *,
        mode: options.Mode = "cache",
        on_miss: options.OnMiss = "error",
        on_mismatch: options.OnMismatch = "error",
        on_unplayed: options.OnUnplayed = "ignore",
        engines: options.Engines = "live",
        restore_rng: bool = True,
        device: torch.device | None = None,
        track_reads: bool = False,
        compression: options.Compression = "zstd",
        on_unstorable: options.OnUnstorable = "warn",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(path, steps, adapters, phases, draft)
        self._mode = mode
        self._on_miss = on_miss
        self._on_mismatch = on_mismatch
        self._on_unplayed = on_unplayed
        self._engines = engines
        self._idle: set[str] = set()
        self._recording: dict[str, Any] = {
            "compression": compression,
            "strict": on_unstorable == "error",
            "metadata": metadata or {},
        }
        self._generators = Generators() if restore_rng else None
        self._known: list[Key] = []
        self._device = device
        self._reads = Reads() if track_reads else None
        self._playlist = Playlist((), partial(Interaction, path))
        self._tape: Tape | None = None
        self._withheld: defaultdict[Line, list[Any]] = defaultdict(list)
        self._polled: Counter[Line] = Counter()
        self._unanswered: dict[Line, Key] = {}
        self._played: list[Played] = []
        self._generated: set[Key] = set()
        self._missed: set[Key] = set()

    # ---- what happened

    def summary(self) -> Summary:
        """Return what was replayed so far, and what was not."""
        with self._lock:
            played, missed, generated = [*self._played], {*self._missed}, {*self._generated}
        recorded = dict(self._tape.recorded) if self._tape else {}
        faults = dict(self._tape.faults.causes) if self._tape else {}
        known = self._known
        absent = set(self.selection.listed or ()) - {key.step for key in known}
        sources = {each.source for each in played}
        return Summary(
            played=sorted({each.step for each in played}),
            generated=steps_of(generated),
            recorded=steps_of(recorded),
            missing=sorted((absent | {key.step for key in missed}) - {k.step for k in recorded}),
            unplayed=steps_of(
                key for key in known if key not in sources and self._should_play(key)
            ),
            faults={str(key): cause for key, cause in faults.items()},
            omissions=self._tape.left_out() if self._tape else {},
            seconds=sum(each.seconds for each in played),
            nbytes=self._tape.nbytes if self._tape else 0,
        )

    @property
    def reads(self) -> dict[str, list[str]] | None:
        """The fields of responses that were read so far, by adapter; None without ``track_reads``."""
        return None if self._reads is None else self._reads.by_adapter()

    def _should_play(self, key: Key) -> bool:
        """Tell whether a run is expected to ask for an interaction."""
        if not self._selects(key):
            return False
        if self._phases is not None or key.phase == TRAIN:
            return True
        try:
            recorded_by = Interaction(self.path, key).manifest.adapter
        except CassetteError:  # whoever asks for it is told
            return True
        phases = [each.phases for each in self._in_use() if each.name == recorded_by]
        return all(some is None or key.phase in some for some in phases)

    def __str__(self) -> str:
        return self.summary().of_replay()

    # ---- life

    def _open(self) -> None:
        if self._reads is not None:
            self._reads.require_observed(*(self._adapters or ()))
        if self._on_miss == "record":
            self._tape = Tape(self._directory, **self._recording, cassette=self.path)
        cassette = Cassette(self._directory)
        if not cassette.keys and self._on_miss != "record":
            raise not_found(self.path)
        kind = Loop if self._mode == "repeat" else Playlist
        self._known = own(cassette.keys)
        self._playlist = kind(cassette.keys, _reader(self.path, self._tape, self._device))
        listed = self.selection.listed or ()
        missing = [Key(step) for step in listed if step not in cassette]
        if self._engines == "off" and self._mode == "cache" and missing:
            raise not_covered(self.path, missing, [], cassette.steps)

    def _close(self) -> None:
        if self._tape is not None:
            self._tape.close()

    def _report(self) -> None:
        summary = self.summary()
        logger.info("%s: %s", self.path, summary.of_replay())
        if self._failed:
            return
        if self._reads is not None:
            self._reads.store(self.path)
        if not self.was_asked:
            logger.warning("nothing was replayed from %s: %s", self.path, self.why_unasked())
        if summary.unplayed and self._on_unplayed != "ignore":
            error = _unplayed(self.path, summary.unplayed)
            if self._on_unplayed == "error":
                raise error
            logger.warning("%s", error)

    # ---- without an engine

    def _start(self, adapter: Adapter, call: Call) -> None:
        """Refuse a run without an engine that is not recorded as a whole, or can't be tracked."""
        if self._reads is not None:
            self._reads.require_observed(adapter)
        places = adapter.start(call)
        if self._engines == "live":
            return
        plan = [(place, place.key(place.step or 0)) for place in places]
        live = [key for place, key in plan if not self._covers(adapter, call, place, key)]
        missing = [
            key
            for _, key in plan
            if key not in live and self._playlist.peek(adapter.name, key, None).interaction is None
        ]
        if missing or live:
            raise not_covered(self.path, missing, live, self._playlist.steps)

    def _answer_engine(self, adapter: Adapter, call: Call) -> Answer:
        """Leave the engine out, if so asked."""
        if self._engines == "live":
            return (yield False)
        level = logging.DEBUG if call.point.target in self._idle else logging.INFO
        logger.log(level, "%s is not called: the engine is off", call.point)
        self._idle.add(call.point.target)
        return adapter.idle(call)

    # ---- answering

    def _answer(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        match call.point.role:
            case Role.SUBMIT:
                return (yield from self._answer_submit(adapter, call, place))
            case Role.RESUBMIT:
                return (yield from self._answer_resubmit(adapter, call, place))
            case Role.POLL:
                return (yield from self._answer_poll(adapter, call, place))
        request = self._request(adapter, call, place)
        if call.point.role is Role.SAMPLE and self._refilled(adapter, call, place, request):
            request = self._request(adapter, call, place)
        with self._playlist.taken(adapter.name, place, request.marks) as choice:
            if choice.interaction is None:
                return (yield from self._miss(adapter, call, place, choice.key))
            result = self._play(adapter, call, place, choice.interaction, request)
            if choice.is_its_own:
                self._advance_generators(call.point.role, choice.interaction)
            return result

    def _answer_submit(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        """Withhold what is submitted, if a recording answers it; else submit it."""
        request = self._request(adapter, call, place)
        choice = self._playlist.peek(adapter.name, place, request.marks)
        if choice.interaction is None:
            return (yield from self._miss(adapter, call, place, choice.key))
        self._compare(adapter, choice.interaction, request, Role.SUBMIT)
        with self._lock:
            self._withheld[adapter.name, place.phase] = [*request.values]
            self._unanswered[adapter.name, place.phase] = place
        if choice.is_its_own:
            self._advance_generators(Role.SUBMIT, choice.interaction)
        recorded = choice.interaction.request if self._mode == "cache" else ()
        return adapter.withhold(call, recorded, request.values)

    def _answer_resubmit(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        """Withhold what an earlier run had submitted, if this run's step is recorded."""
        choice = self._playlist.peek(adapter.name, place, None)
        if choice.interaction is not None:
            self._unanswered[adapter.name, place.phase] = place
            return adapter.withhold(call, (), ())
        if self._on_miss == "error":
            raise Miss(self.path, self._playlist, adapter.name, place, choice.key).error()
        self._prepare_live(adapter, call, place)
        return (yield True)

    def _answer_poll(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        """Tell what the recorded run was told, where the step's rollouts are recorded."""
        interaction = self._playlist.peek(adapter.name, place, None).interaction
        if interaction is None:
            return (yield True)
        line = (adapter.name, place.phase)
        with self._lock:
            number = self._polled[line]
            self._polled[line] += 1
        if self._mode == "repeat" or number >= len(interaction.polls):
            return adapter.poll(call)
        return adapter.restore(call, Exchange(None, interaction.polls[number]), (), None)

    def _refilled(self, adapter: Adapter, call: Call, place: Key, request: Request) -> bool:
        """Let the submits be made that were made while the recorded run sampled.

        Returns:
            Whether there were any: more is asked for then.
        """
        if self._mode == "repeat":
            return False
        interaction = self._playlist.peek(adapter.name, place, request.marks).interaction
        missing = () if interaction is None else interaction.request[len(request.values) :]
        if missing:
            adapter.refill(call, missing)
        return bool(missing)

    def _request(self, adapter: Adapter, call: Call, place: Key) -> Request:
        """Return what a call asks for: a submit with those before it, a sample for all of them."""
        if call.point.role is Role.WHOLE:
            values = [adapter.request(call)]
            rows = adapter.rows(values[0])
        else:
            with self._lock:
                values = [*self._withheld[adapter.name, place.phase]]
            if call.point.role is Role.SUBMIT:
                values.append(adapter.request(call))
            rows = adapter.rows(values)
        if self._mode == "repeat" or rows is None:
            return Request(values, None, None)
        return Request(values, rows, fingerprint(rows))

    def _miss(self, adapter: Adapter, call: Call, place: Key, key: Key) -> Answer:
        """Deal with a call that the cassette has no recording of."""
        with self._lock:
            self._missed.add(key)
        is_withheld = self._is_withheld(adapter, call, place)
        if self._on_miss == "error" or is_withheld:
            raise Miss(self.path, self._playlist, adapter.name, place, key, is_withheld).error()
        logger.info("%s is not in %s: it is generated live", key, self.path)
        self._prepare_live(adapter, call, place)
        if self._tape is not None:
            if call.point.role is Role.SUBMIT:
                return (yield from self._tape.submit(adapter, call, key))
            result = yield from self._tape.take(adapter, call, key)
            if key in self._tape.recorded:
                self._playlist.learn(key)
            return result
        result = yield True
        with self._lock:
            self._generated.add(key)
        return result

    def _is_withheld(self, adapter: Adapter, call: Call, place: Key) -> bool:
        """Tell whether a live sample would wait for what was withheld: nobody works on that.

        It was submitted since the last sample, or for an earlier sample of the same step.
        """
        if call.point.role is not Role.SAMPLE:
            return False
        line = (adapter.name, place.phase)
        with self._lock:
            return bool(self._withheld[line]) or self._unanswered.get(line) == place

    def _prepare_live(self, adapter: Adapter, call: Call, place: Key) -> None:
        """Dispatch what was withheld and not answered, before something is submitted live.

        Raises:
            StepNotRecordedError: If there is no engine that could answer.
        """
        if self._engines == "off" and any(p.role is Role.ENGINE for p in adapter.entry_points):
            raise not_covered(self.path, [], [place], self._playlist.steps)
        line = (adapter.name, place.phase)
        is_submitted = call.point.role is Role.SUBMIT and line in self._unanswered
        if is_submitted or call.point.role is Role.RESUBMIT:
            self._unanswered.pop(line, None)
            adapter.release(call)

    def _play(
        self,
        adapter: Adapter,
        call: Call,
        place: Key,
        interaction: Interaction,
        request: Request,
    ) -> Any:
        """Return what a recording gives for a call."""
        self._compare(adapter, interaction, request, call.point.role)
        if interaction.manifest.tensors.compression is None:
            interaction.verify()  # reading a compressed file verifies it
        compare = partial(self._compare_rows, interaction.key)
        recorded = Exchange(interaction.request, interaction.response, compare)
        shift = None if self._mode == "cache" else place.step - interaction.step
        result = adapter.restore(call, recorded, request.values, shift)
        with self._lock:
            self._withheld.pop((adapter.name, place.phase), None)
            self._polled.pop((adapter.name, place.phase), None)
            seconds = interaction.manifest.seconds
            self._played.append(Played(place.step, interaction.key, seconds))
        logger.info("replayed %s from %s", interaction.key, interaction.path)
        return result if self._reads is None else self._reads.watched(adapter, result)

    def _compare(
        self, adapter: Adapter, interaction: Interaction, request: Request, role: Role
    ) -> None:
        """Refuse a recording of another request, or warn of it.

        After a submit more may follow, so only the first rows are compared then; when they are
        sampled, it remains to be seen whether those were all.
        """
        recorded, live = interaction.manifest.fingerprint, request.marks
        if recorded is None or live is None or request.rows is None:
            return
        count = len(live) if role is Role.SUBMIT else None
        compared = role is Role.SAMPLE and len(live) == len(recorded)
        if compared or recorded[:count] == live:
            return
        rows = adapter.rows(interaction.request) or ()
        self._compare_rows(interaction.key, rows[:count], request.rows)

    def _compare_rows(self, key: Key, recorded: Rows, live: Rows) -> None:
        """Refuse a recording of other rows, or warn of it."""
        if self._mode == "repeat":
            return
        error = mismatch(self.path, key, recorded, live)
        if error is not None and self._on_mismatch == "error":
            raise error
        if error is not None:
            logger.warning("%s", error.what)

    def _advance_generators(self, role: Role, interaction: Interaction) -> None:
        """Do to the random generators what the live call did."""
        if self._generators is None:
            return
        states = interaction.random_state.get(role.value, {})
        try:
            self._generators.advance(states, Span(*interaction.manifest.span))
        except ValueError as error:
            raise _not_advanced(interaction, error) from error


def _reader(
    path: Path, tape: Tape | None, device: torch.device | None
) -> Callable[[Key], Interaction]:
    """Return what reads an interaction; what was recorded in a draft is not in the cassette yet."""

    def read(key: Key) -> Interaction:
        is_new = tape is not None and key in tape.recorded
        directory = tape.path if tape is not None and is_new else path
        return Interaction(directory, key, device=device, strict=True)

    return read


def _not_advanced(interaction: Interaction, error: ValueError) -> CassetteError:
    return CassetteError(
        f"The random generators can't be put where {interaction.key} of {interaction.path.parent} "
        f"left them: {error}.",
        fixes=[
            "Replay with the generators, and the libraries, that the recorded run had.",
            "Leave the generators as they are: replay(..., restore_rng=False).",
        ],
    )


def _unplayed(path: Path, steps: list[int]) -> UnplayedError:
    again = f"record({spans(steps)!r}, path={str(path)!r}, on_existing='overwrite')"
    return UnplayedError(
        f"The cassette {path} holds recordings of {named_steps(steps)} that were never asked for.",
        fixes=[
            "Look whether the loop ended early, makes fewer calls, or counts its steps otherwise.",
            "Select the steps that are meant: replay(steps=...).",
            f"Record the steps again: {again}.",
        ],
        path=path,
        steps=steps,
    )
