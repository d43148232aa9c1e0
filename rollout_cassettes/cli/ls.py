"""The command ``ls``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rollout_cassettes.cassette import Cassette, Interaction, Manifest
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import by_cassette, found_in, opening, places
from rollout_cassettes.cli.output import Json, display, print_json, warn
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import (
    readable_age,
    readable_bytes,
    readable_count,
    readable_number,
)
from rollout_cassettes.display.sheet import table
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError, spans
from rollout_cassettes.trajectories import Statistics

FRAMEWORKS = ("verl", "trl", "torchrl")
_WIDTH_OF_STEPS, _WIDE = 10, 100  # characters


@dataclass(frozen=True)
class Line:
    """What there is to say of a cassette.

    Attributes:
        path: Its directory.
        steps: The recorded steps.
        rows: How many trajectories it holds, those of all phases; None if that was not read.
        tokens: How many tokens their responses have.
        reward: The mean of their rewards.
        nbytes: Its size on disk, in bytes.
        recorded_at: When its last interaction was recorded, ISO 8601.
        adapters: Who recorded it.
        versions: The versions of the training framework, by its name.
        errors: What is wrong with it, one for each interaction that can't be read.
    """

    path: Path
    steps: list[int]
    rows: int | None
    tokens: int | None
    reward: float | None
    nbytes: int
    recorded_at: str | None
    adapters: list[str]
    versions: dict[str, list[str]]
    errors: list[str]


def ls(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Cassettes, or directories with cassettes in them.  [default: cassettes]",
            show_default=False,
        ),
    ] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Read no tensors: faster, without rows, tokens and reward."),
    ] = False,
    json: Json = False,
) -> None:
    """List cassettes: steps, rows, tokens, reward, size, age, and what recorded them.

    Rows and tokens (of responses) are totals, the reward is the mean over all rows. Needs neither
    torch nor a framework. Exits with status 1 if a cassette can't be read, in whole or in part.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        cassettes = found_in(paths or [Path("cassettes")])
    lines = [
        _line(cassette, opening(at), brief=brief)
        for cassette, at in by_cassette(tracked(places(cassettes), "Reading", errors))
    ]
    if json:
        print_json([{**asdict(line), "path": str(line.path)} for line in lines])
    else:
        display(console, _table(lines, console.width))
    for line in lines:
        for what in line.errors:
            warn(errors, what)
    if any(line.errors for line in lines):
        raise typer.Exit(1)


def _line(cassette: Cassette, interactions: Iterable[Interaction], *, brief: bool) -> Line:
    read: list[Statistics] = []
    manifests: list[Manifest] = []
    errors: list[str] = []
    nbytes = 0
    for interaction in interactions:
        try:
            nbytes += interaction.nbytes
            manifests.append(interaction.manifest)
            if not brief:
                read.append(interaction.figures.statistics)
        except CassetteError as error:
            errors.append(error.what)
    return Line(
        path=cassette.path,
        steps=cassette.steps,
        rows=None if brief else sum(each.rows for each in read),
        tokens=sum(each.response_tokens or 0 for each in read) or None,
        reward=_mean(read),
        nbytes=nbytes,
        recorded_at=max((each.recorded_at for each in manifests), default=None),
        adapters=sorted({each.adapter for each in manifests}),
        versions={
            name: sorted({each.versions[name] for each in manifests if name in each.versions})
            for name in FRAMEWORKS
            if any(name in each.versions for each in manifests)
        },
        errors=errors,
    )


def _mean(read: Sequence[Statistics]) -> float | None:
    """Return the mean reward of all rows that have one."""
    scored = sum(each.scored for each in read)
    return sum((each.reward or 0.0) * each.scored for each in read) / scored if scored else None


def _table(lines: Sequence[Line], width: int) -> Table:
    """Make the table; on a narrow terminal, what belongs together stands below each other."""
    apart = ", " if width >= _WIDE else "\n"
    headings = ("steps", "rows", "tokens", "reward", "size", "age")
    made = table("cassette", *headings, "recorded by", left=["cassette", "recorded by"])
    made.columns[0].no_wrap, made.columns[0].overflow = False, "fold"
    for line in lines:
        versions = [f"{name} {version}" for name, all_ in line.versions.items() for version in all_]
        made.add_row(
            Text(visible(str(line.path)), style="red" if line.errors else ""),
            _steps(line.steps),
            readable_count(line.rows or None),
            readable_count(line.tokens),
            readable_number(line.reward),
            readable_bytes(line.nbytes),
            "" if line.recorded_at is None else readable_age(line.recorded_at),
            Text(visible(apart.join([*line.adapters, *versions]))),
        )
    return made


def _steps(steps: list[int]) -> str:
    """Write steps as they are, or how many there are where that is shorter."""
    written = spans(steps)
    return written if len(written) <= _WIDTH_OF_STEPS else f"{len(steps)} of {steps[-1]}"
