"""The command ``prune``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette import Cassette
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import opened
from rollout_cassettes.cli.output import CassettePath, Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import named_steps

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def prune(
    path: CassettePath,
    *,
    keep_last: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Keep the last N steps.", show_default=False),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Remove steps that were recorded longer ago than this: 30d, 2w, 12h, 90m.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    json: Json = False,
) -> None:
    """Remove recorded steps of a cassette: old ones, or all but the last.

    With both options a step goes that is older, and is not among the last. Names what is to go, and
    asks; exits with status 1 if the answer is no.
    """
    if keep_last is None and older_than is None:
        raise typer.BadParameter("give --keep-last, --older-than, or both")
    age = None if older_than is None else _age(older_than)
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        cassette = opened(path)
        steps = _doomed(cassette, keep_last, age)
        gone = [each for step in steps for each in cassette.interactions(step)]
        nbytes = sum(each.nbytes for each in gone)
        told = f"{named_steps(steps)} of {visible(str(path))}, {readable_bytes(nbytes)}"
        if steps and not yes:
            typer.confirm(f"Remove {told}?", abort=True, err=True)
        with Writer(path) as writer:
            for interaction in tracked(gone, "Removing", errors):
                writer.remove(interaction.key)
    if json:
        print_json({"path": str(path), "removed": steps, "nbytes": nbytes})
    else:
        display(console, Text(f"Removed {told}"))


def _doomed(cassette: Cassette, keep_last: int | None, age: timedelta | None) -> list[int]:
    """Return the steps that are to go."""
    steps: Sequence[int] = cassette.steps
    if keep_last is not None:
        steps = steps[: max(len(steps) - keep_last, 0)]
    if age is None:
        return list(steps)
    now = datetime.now(timezone.utc)
    return [step for step in steps if now - _recorded_at(cassette, step) > age]


def _recorded_at(cassette: Cassette, step: int) -> datetime:
    """Return when the last interaction of a step was recorded."""
    return max(
        datetime.fromisoformat(each.manifest.recorded_at) for each in cassette.interactions(step)
    )


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None:
        raise typer.BadParameter(f"--older-than is written 30d, 2w, 12h or 90m, not {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
