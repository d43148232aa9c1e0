"""The command ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rollout_cassettes.cli.failure import reported
from rollout_cassettes.demo.launcher import run_demo
from rollout_cassettes.demo.report import render, reporter

DEMO_PATH = Path("cassettes/demo-latest")


def demo(
    path: Annotated[
        Path | None,
        typer.Option(help=f"The cassette's directory. [default: {DEMO_PATH}, which is replaced]"),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="How many steps to train.")] = 3,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a cassette that is there already.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and progress to stderr.")
    ] = False,
) -> None:
    """Train a tiny model with verl on this CPU, recorded; then again from the cassette.

    Exits with status 1 if anything differs between the two. Needs `rollout_cassettes[verl]`.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors), reporter(errors if json else console) as report:
        result = run_demo(
            path or DEMO_PATH, steps, overwrite=overwrite or path is None, report=report
        )
    if json:
        typer.echo(result.to_json())
    else:
        render(result, console)
    if not result.identical:
        raise typer.Exit(1)
