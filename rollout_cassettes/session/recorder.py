"""The session that records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette import Cassette, Interaction, Key
from rollout_cassettes.cassette.rank import own
from rollout_cassettes.errors import CassetteNotFoundError, StepExistsError, named_steps, spans
from rollout_cassettes.patching import Answer, Call, Role
from rollout_cassettes.session import options
from rollout_cassettes.session.draft import Draft
from rollout_cassettes.session.faults import cause_of
from rollout_cassettes.session.playlist import Playlist
from rollout_cassettes.session.session import Session, logger, steps_of
from rollout_cassettes.session.steps import Steps, StepsArgument
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.tape import Tape


def record(
    steps: StepsArgument = None,
    *,
    path: str | os.PathLike[str] | None = None,
    adapters: options.Adapters = None,
    phases: Iterable[str] | str | None = None,
    compression: options.Compression = "zstd",
    on_existing: options.OnExisting = "error",
    on_unstorable: options.OnUnstorable = "warn",
    metadata: Mapping[str, Any] | None = None,
) -> Recorder:
    """Record what the rollout engine produces, while a with-block is open.

    Each finished step is safe on the disk when the engine's answer reaches the trainer, also if
    the block ends in an exception later.

    Args:
        steps: The steps to record: None for all, a number, numbers, ``"1-5,8"``, or a predicate.
        path: The cassette's directory, which is made; by default ``$ROLLOUT_CASSETTES_PATH``, else
            ``cassettes/default``.
        adapters: What to intercept: adapters, or their names such as ``"verl_v1"``; by default
            every framework that is, or gets, imported, and every function marked with
            :func:`rollout_cassettes.adapters.function`.
        phases: The phases to record, such as ``("train", "val")``; by default training rollouts
            alone where an adapter knows of phases, and else every call.
        compression: ``"zstd"``; None for plain safetensors files, which can be read in part.
        on_existing: What to do where the cassette already holds a selected step: refuse at the
            with-statement, leave what is there as it is, or overwrite it.
        on_unstorable: What to do where a value can't be stored, or writing fails: log a warning
            and let the training go on, or raise.
        metadata: Put into every manifest: plain values, such as a git revision.

    Raises:
        ValueError: If an option's value is not one of those listed.
        TypeError: If an option is of the wrong type.
    """
    return Recorder(
        options.cassette_path(path),
        Steps.parse(steps),
        options.adapters(adapters),
        options.phases(phases),
        compression=options.compression(compression),
        on_existing=options.word("on_existing", on_existing, options.OnExisting),
        on_unstorable=options.word("on_unstorable", on_unstorable, options.OnUnstorable),
        metadata=options.metadata(metadata),
    )


class Recorder(Session):
    """Makes the calls of its steps live, and records them. Made by :func:`record`."""

    def __init__(
        self,
        path: Path,
        steps: Steps,
        adapters: list[Adapter] | None,
        phases: frozenset[str] | None = None,
        draft: Draft | None = None,
        *,
        compression: options.Compression,
        on_existing: options.OnExisting,
        on_unstorable: options.OnUnstorable,
        metadata: dict[str, Any],
    ) -> None:
        super().__init__(path, steps, adapters, phases, draft)
        self._compression = compression
        self._on_existing = on_existing
        self._strict = on_unstorable == "error"
        self._metadata = metadata
        self._kept: set[Key] = set()
        self._tape: Tape | None = None
        self._playlist = Playlist((), partial(Interaction, path))
        self._misplaced: dict[str, str] = {}

    # ---- what happened

    def summary(self) -> Summary:
        """Return what was recorded so far, and what could not be."""
        if self._tape is None:
            return Summary()
        seconds, faults = dict(self._tape.recorded), dict(self._tape.faults.causes)
        there = {key.step for key in [*seconds, *self._kept]}
        absent = set(self.selection.listed or ()) - there
        return Summary(
            recorded=steps_of(seconds),
            missing=sorted(absent.union(key.step for key in faults)),
            faults=self._misplaced | {str(key): cause for key, cause in faults.items()},
            omissions=self._tape.left_out(),
            seconds=sum(seconds.values()),
            nbytes=self._tape.nbytes,
        )

    def __str__(self) -> str:
        return self.summary().of_recording()

    # ---- life

    def _open(self) -> None:
        self._tape = Tape(
            self._directory,
            self._compression,
            strict=self._strict,
            metadata=self._metadata,
            cassette=self.path,
        )
        existing = self._existing()
        covered = [key for key in existing if self._selects(key)]
        if covered and self._on_existing == "error":
            raise _exists(self.path, steps_of(covered))
        self._kept = set(covered) if self._on_existing == "skip" else set()
        self._playlist = Playlist(covered, partial(Interaction, self.path))

    def _existing(self) -> list[Key]:
        """Return what is in the directory; nothing where it isn't there, or can't be read."""
        try:
            return own(Cassette(self._directory).keys)
        except (CassetteNotFoundError, OSError):
            return []

    def _close(self) -> None:
        if self._tape is not None:
            self._tape.close()

    def _report(self) -> None:
        logger.info("%s: %s", self.path, self)
        if not self._failed and not self.was_asked and not self._misplaced:
            logger.warning("nothing was recorded in %s: %s", self.path, self.why_unasked())

    # ---- answering

    def _misplace(self, call: Call, error: Exception) -> None:
        if self._strict:
            super()._misplace(call, error)
        self._misplaced[f"a call of {call.point}"] = cause_of(error)
        logger.warning("a call of %s was not recorded: %s", call.point, error, exc_info=error)

    def _prepare_live(self, adapter: Adapter, call: Call, place: Key) -> None:
        """Nothing: every call goes live."""

    def _answer(self, adapter: Adapter, call: Call, place: Key) -> Answer:
        assert self._tape is not None  # noqa: S101 - an open session has one
        if call.point.role is Role.RESUBMIT:  # the run that submitted it has recorded it
            return (yield True)
        old: list[Key] | None = None
        with self._tape.faults.tolerated(place):
            old = self._playlist.recorded(adapter.name, place)
        if old is None:  # what can't be read is neither kept nor overwritten
            return (yield True)
        if call.point.role in (Role.SUBMIT, Role.POLL):
            key = self._playlist.peek(adapter.name, place, None).key
            if key in self._kept:
                return (yield True)
            keep = self._tape.submit if call.point.role is Role.SUBMIT else self._tape.poll
            return (yield from keep(adapter, call, key))
        with self._playlist.taken(adapter.name, place, None) as choice:
            if choice.key in self._kept:
                return (yield True)
            result = yield from self._tape.take(adapter, call, choice.key)
        if self._on_existing == "overwrite" and choice.key in self._tape.recorded:
            with self._tape.faults.tolerated(choice.key):
                self._tape.discard(old)
        return result


def _exists(path: Path, steps: list[int]) -> StepExistsError:
    return StepExistsError(
        f"The cassette {path} already holds {named_steps(steps)}.",
        fixes=[
            f"Replay instead of recording: replay({spans(steps)!r}, path={str(path)!r}).",
            "Keep what is there, and record what is missing: record(..., on_existing='skip').",
            "Record the steps again: record(..., on_existing='overwrite').",
            "Record into another directory: record(..., path=...).",
        ],
        path=path,
        steps=steps,
    )
