"""What commands print: JSON for machines, and what people read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories.records import plain

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and all else to stderr.")]
CassettePath = Annotated[
    Path, typer.Argument(metavar="PATH", help="The cassette's directory.", show_default=False)
]


def print_json(value: Any) -> None:
    """Print a value as JSON; what JSON lacks, such as NaN, is null."""
    typer.echo(json.dumps(plain(value), indent=2))


def warn(errors: Console, what: str) -> None:
    """Print a warning."""
    errors.print(Text.assemble(("Warning:", "yellow"), f" {visible(what)}"), soft_wrap=True)


def display(console: Console, part: RenderableType) -> None:
    """Print what people read: text as it is, without markup."""
    console.print(part, highlight=False, markup=False)
