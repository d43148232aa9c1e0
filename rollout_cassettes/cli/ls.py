"""The command ``ls``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len
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
from rollout_cassettes.errors import CassetteError, spans, unreadable
from rollout_cassettes.trajectories import Statistics

FRAMEWORKS = ("verl", "trl", "torchrl", "slime", "miles-rl", "skyrl", "skyrl-train", "openrlhf")
_WIDTH_OF_STEPS, _WIDE, _GAP, _NARROWEST = 10, 100, 2, 16  # characters


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
        display(console, _table(lines, console.width, brief=brief))
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
        except (CassetteError, OSError) as error:
            errors.append(unreadable(error, interaction.path))
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


def _table(lines: Sequence[Line], width: int, *, brief: bool) -> Table:
    """Make the table; on a narrow terminal, what belongs together stands below each other."""
    apart = ", " if width >= _WIDE else "\n"
    facts = [_facts(line, apart, brief=brief) for line in lines]
    headings = list(facts[0])
    made = table("cassette", *headings, left=["cassette", "recorded by"])
    made.columns[0].overflow = "fold"
    columns = zip(headings, *(each.values() for each in facts), strict=True)
    room = width - sum(_GAP + max(map(_cells, column)) for column in columns)
    for line, others in zip(lines, facts, strict=True):
        path = _broken(visible(str(line.path)), max(room, _NARROWEST))
        made.add_row(Text(path, style="red" if line.errors else ""), *map(Text, others.values()))
    return made


def _facts(line: Line, apart: str, *, brief: bool) -> dict[str, str]:
    """Return the cells of a line by their headings, but for the path."""
    versions = [f"{name} {version}" for name, all_ in line.versions.items() for version in all_]
    read = {
        "rows": readable_count(line.rows or None),
        "tokens": readable_count(line.tokens),
        "reward": readable_number(line.reward),
    }
    return {
        "steps": _steps(line.steps),
        **({} if brief else read),
        "size": readable_bytes(line.nbytes),
        "age": "" if line.recorded_at is None else readable_age(line.recorded_at),
        "recorded by": visible(apart.join([*line.adapters, *versions])),
    }


def _cells(text: str) -> int:
    """Return how wide a cell is."""
    return max(map(cell_len, text.split("\n")))


def _broken(path: str, room: int) -> str:
    """Break a path that is too long between its directories, else between the words of a name."""
    lines = [""]
    for name in re.findall(r"[^/]*/|[^/]+", path):
        fits = cell_len(name) <= room
        for piece in [name] if fits else re.findall(r"[^-_.]*[-_.]|[^-_.]+", name):
            if lines[-1] and cell_len(lines[-1] + piece) > room:
                lines.append("")
            lines[-1] += piece
    return "\n".join(lines)


def _steps(steps: list[int]) -> str:
    """Write steps as they are, or how many there are where that is shorter."""
    written = spans(steps)
    return written if len(written) <= _WIDTH_OF_STEPS else f"{len(steps)} of {steps[-1]}"
