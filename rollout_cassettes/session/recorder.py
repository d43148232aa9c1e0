"""The session that records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rollout_cassettes.adapters import Adapter, Place
from rollout_cassettes.cassette import Cassette, Key
from rollout_cassettes.errors import StepExistsError, spans
from rollout_cassettes.patching import Answer, Call, Half
from rollout_cassettes.session import options
from rollout_cassettes.session.session import Session, logger, steps_of
from rollout_cassettes.session.steps import Steps, StepsArgument
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.tape import Tape


def record(
    steps: StepsArgument = None,
    *,
    path: str | os.PathLike[str] | None = None,
    adapters: Iterable[Adapter] | Adapter | None = None,
    compression: Literal["zstd"] | None = "zstd",
    on_existing: Literal["error", "skip", "overwrite"] = "error",
    on_unstorable: Literal["warn", "error"] = "warn",
    metadata: Mapping[str, Any] | None = None,
) -> Recorder:
    """Record what the rollout engine produces, while a with-block is open.

    Each finished step is safe on the disk when the engine's answer reaches the trainer, also if
    the block ends in an exception later.

    Args:
        steps: The steps to record: None for all, a number, numbers, ``"1-5,8"``, or a predicate.
        path: The cassette's directory, which is made; by default ``$ROLLOUT_CASSETTES_PATH``, else
            ``cassettes/default``.
        adapters: What to intercept; by default every framework that is, or gets, imported, and
            every function marked with :func:`rollout_cassettes.adapters.function`.
        compression: ``"zstd"``; None for plain safetensors files, which can be read in part.
        on_existing: What to do where the cassette already holds a selected step: refuse at the
            with-statement, leave it as it is, or overwrite it.
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
        compression=options.compression(compression),
        on_existing=options.word("on_existing", on_existing, options.ON_EXISTING),
        on_unstorable=options.word("on_unstorable", on_unstorable, options.ON_UNSTORABLE),
        metadata=dict(metadata or {}),
    )


class Recorder(Session):
    """Makes the calls of its steps live, and records them. Made by :func:`record`."""

    def __init__(
        self,
        path: Path,
        steps: Steps,
        adapters: list[Adapter] | None,
        *,
        compression: str | None,
        on_existing: str,
        on_unstorable: str,
        metadata: dict[str, Any],
    ) -> None:
        super().__init__(path, steps, adapters)
        self._compression = compression
        self._on_existing = on_existing
        self._strict = on_unstorable == "error"
        self._metadata = metadata
        self._existing: set[Key] = set()
        self._tape: Tape | None = None

    def summary(self) -> Summary:
        """Return what was recorded so far, and what could not be."""
        if self._tape is None:
            return Summary()
        recorded = steps_of(self._tape.recorded)
        wanted = set(self.selection.listed or ()) | {key.step for key in self._tape.faults}
        missing = wanted - set(recorded) - {key.step for key in self._existing}
        return Summary(
            recorded=recorded,
            missing=sorted(missing),
            faults={str(key): cause for key, cause in self._tape.faults.items()},
            seconds=sum(self._tape.recorded.values()),
            nbytes=self._tape.nbytes,
        )

    def __str__(self) -> str:
        return self.summary().of_recording()

    def _open(self) -> None:
        existing = Cassette(self.path).keys if self.path.exists() else []
        covered = [key for key in existing if self.selection.covers(key.step)]
        if covered and self._on_existing == "error":
            raise _exists(self.path, steps_of(covered))
        if self._on_existing == "skip":
            self._existing = set(covered)
        self._tape = Tape(
            self.path, self._compression, strict=self._strict, metadata=self._metadata
        )

    def _close(self, *, failed: bool) -> None:
        if self._tape is None:
            return
        self._tape.close()
        if self._tape.recorded or failed:
            logger.info("%s: %s", self.path, self)
        else:
            logger.warning(
                "nothing was recorded in %s: no entry point of %s was called for the steps %s",
                self.path,
                ", ".join(sorted({adapter.name for adapter in self._points.values()}))
                or "an adapter",
                self.selection.text,
            )

    def _place_failed(self, call: Call, error: Exception) -> None:
        if self._strict:
            raise error
        logger.warning("a call of %s was not recorded: %s", call.point, error, exc_info=error)

    def _answer(self, adapter: Adapter, call: Call, place: Place) -> Answer:
        assert self._tape is not None  # noqa: S101 - an open session has one
        if call.point.half is Half.SUBMIT:
            return (yield from self._tape.submit(adapter, call, self._next(place)))
        key, done = self._reserve(place), False
        try:
            if key in self._existing:
                result = yield
            else:
                result = yield from self._tape.take(adapter, call, key)
            done = True
        finally:
            if not done:
                self._give_back(place, key)
        return result


def _exists(path: Path, steps: list[int]) -> StepExistsError:
    return StepExistsError(
        f"The cassette {path} already holds the steps {spans(steps)}.",
        fixes=[
            "Replay them: with replay(...): ...",
            'Keep them, and record only what is missing: record(..., on_existing="skip").',
            'Record them again: record(..., on_existing="overwrite").',
            "Record into another directory: record(..., path=...).",
        ],
        path=path,
        steps=steps,
    )
