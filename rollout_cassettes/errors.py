"""The exceptions of this library: what happened, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "AdapterLoadError",
    "CassetteCorruptError",
    "CassetteError",
    "CassetteInUseError",
    "CassetteNotFoundError",
    "CassetteVersionError",
    "CassetteWriteError",
    "EntryPointNotFoundError",
    "RequestMismatchError",
    "RolloutBlockedError",
    "StepExistsError",
    "StepNotRecordedError",
    "UnplayedError",
    "UnstorableValueError",
]


class CassetteError(Exception):
    """Base of every error that this library raises on purpose.

    Args:
        what: What happened, and where.
        fixes: Ways to mend it, shown as a numbered list.
        **cause: The facts behind the message; each becomes an attribute.
    """

    def __init__(self, what: str, *, fixes: Sequence[str] = (), **cause: Any) -> None:
        super().__init__(what)
        self.what = what
        self.fixes = tuple(fixes)
        for name, value in cause.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        if not self.fixes:
            return self.what
        ways = (f"  {number}. {fix}" for number, fix in enumerate(self.fixes, start=1))
        return "\n".join([self.what, "To fix it:", *ways])


class CassetteNotFoundError(CassetteError):
    """There is no cassette at the path.

    Attributes:
        path: Where a cassette was looked for.
    """

    path: Path


class CassetteCorruptError(CassetteError):
    """A file of the cassette is damaged, altered, or missing.

    Attributes:
        path: The file that can't be trusted.
    """

    path: Path


class CassetteVersionError(CassetteError):
    """The cassette was written in a format newer than this library knows.

    Attributes:
        path: The manifest that says so.
        found: The format version it was written in.
        known: The newest format version that this library reads.
    """

    path: Path
    found: Any
    known: int


class CassetteInUseError(CassetteError):
    """Another session is writing to the cassette.

    Attributes:
        path: The cassette's directory.
    """

    path: Path


class CassetteWriteError(CassetteError):
    """The cassette can't be written to: a full disk, a directory without permission.

    Attributes:
        path: The cassette's directory.
        step: The step that was to be written; None where it failed before the first one.
        phase: Its phase; None where it failed before the first step.
    """

    path: Path
    step: int | None
    phase: str | None


class StepNotRecordedError(CassetteError):
    """A replay was asked for a step that the cassette lacks: a miss.

    Attributes:
        path: The cassette's directory.
        step: The step asked for.
        phase: The phase asked for.
        index: Which of the step's interactions was asked for, counted from 0.
        recorded: The steps that the cassette holds.
    """

    path: Path
    step: int
    phase: str
    index: int
    recorded: list[int]


class StepExistsError(CassetteError):
    """Recording would overwrite interactions that the cassette holds already.

    Attributes:
        path: The cassette's directory.
        steps: The steps that are there already.
    """

    path: Path
    steps: list[int]


class RequestMismatchError(CassetteError):
    """The step was recorded, but for another request.

    Attributes:
        path: The cassette's directory.
        step: The step asked for.
        phase: The phase asked for.
        row: The first row that differs, counted from 0; None where the number of rows differs.
        field: The field of the row that differs; None where the number of rows differs.
        recorded: The recorded value, or the recorded number of rows.
        live: The live value, or the live number of rows.
    """

    path: Path
    step: int
    phase: str
    row: int | None
    field: str | None
    recorded: Any
    live: Any


class RolloutBlockedError(CassetteError):
    """A test made a live rollout outside a cassette, and the pytest plugin blocks them.

    Attributes:
        target: The intercepted function, as ``module:Qualified.name``.
    """

    target: str


class UnplayedError(CassetteError):
    """A replay ended and recorded interactions were never asked for.

    Attributes:
        path: The cassette's directory.
        steps: The steps that were not played.
    """

    path: Path
    steps: list[int]


class UnstorableValueError(CassetteError):
    """A value is of a type that a cassette can't hold.

    Attributes:
        location: Where in the request or response the value stands.
        type_name: The value's type, as ``module.Class``.
        reason: Why it can't be stored, or can't be given back.
    """

    location: str
    type_name: str
    reason: str


class EntryPointNotFoundError(CassetteError):
    """A framework lacks a function that an adapter intercepts.

    Attributes:
        adapter: The adapter's name.
        target: What was looked for, as ``module:Qualified.name``.
        framework: The framework's distribution name.
        version: Its installed version; None where it isn't installed.
    """

    adapter: str
    target: str
    framework: str
    version: str | None


class AdapterLoadError(CassetteError):
    """An installed distribution offers an adapter that can't be used.

    Attributes:
        adapter: The name under which it is offered.
        target: Where it was looked for, as ``module:attribute``.
        distribution: The distribution's name and version.
    """

    adapter: str
    target: str
    distribution: str


def unreadable(error: CassetteError | OSError, where: object) -> str:
    """Say in a line why an interaction can't be read.

    Args:
        error: What reading it raised; an OSError where the system won't read its files.
        where: The interaction.
    """
    return error.what if isinstance(error, CassetteError) else f"{where} can't be read: {error}."


def shorten(value: object, width: int = 120) -> str:
    """Return ``repr(value)``, cut to ``width`` characters."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def named_steps(steps: Iterable[int]) -> str:
    """Name steps in a sentence: ``step 7``, ``steps 1-3, 7``, ``no steps``."""
    chosen = set(steps)
    if not chosen:
        return "no steps"
    return f"step {next(iter(chosen))}" if len(chosen) == 1 else f"steps {spans(chosen)}"


def spans(steps: Iterable[int]) -> str:
    """Write steps as people do: ``1-3, 7``; ``none`` for no step."""
    runs: list[list[int]] = []
    for step in sorted(set(steps)):
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs) or "none"
