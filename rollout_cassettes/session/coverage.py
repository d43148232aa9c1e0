"""Is all of a run recorded? It has to be, where there is no engine that could be asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import StepNotRecordedError, named_steps, spans


def not_covered(
    path: Path, missing: Sequence[Key], live: Sequence[Key], recorded: list[int]
) -> StepNotRecordedError:
    """Return the error for a run without an engine that would ask for more than is recorded.

    Args:
        path: The cassette's directory.
        missing: What the session covers and the cassette lacks.
        live: What the session does not cover, and would go live.
        recorded: The steps that the cassette holds.
    """
    told: list[str] = []
    fixes: list[str] = []
    if missing:
        told.append(f"{_named(missing)} {'is' if len(missing) == 1 else 'are'} not recorded")
        steps = spans(sorted({key.step for key in missing}))
        fixes.append(
            f"Record what is missing: record({steps!r}, path={str(path)!r}{_phases(missing)})."
        )
    if live:
        told.append(
            f"{_named(live)} {'is' if len(live) == 1 else 'are'} not covered by the session"
        )
        fixes.append("Cover it with steps= and phases=, or let the run not ask for it.")
    first = min([*missing, *live])
    return StepNotRecordedError(
        f"With engines='off' all of a run comes from the cassette {path}: {'; '.join(told)}.",
        fixes=[*fixes, "Start the engine for what is not recorded: replay(..., engines='live')."],
        path=path,
        step=first.step,
        phase=first.phase,
        index=first.index,
        recorded=recorded,
    )


def _named(keys: Sequence[Key]) -> str:
    """Name steps by phase: ``steps 4-6 and step 0 (val)``."""
    phases = sorted({key.phase for key in keys}, key=lambda phase: (phase != TRAIN, phase))
    return " and ".join(
        named_steps([key.step for key in keys if key.phase == phase])
        + ("" if phase == TRAIN else f" ({phase})")
        for phase in phases
    )


def _phases(keys: Sequence[Key]) -> str:
    phases = sorted({key.phase for key in keys})
    return "" if phases == [TRAIN] else f", phases={phases!r}"
