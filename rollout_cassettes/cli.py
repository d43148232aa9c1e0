"""The command line: ``rollout-cassettes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import rollout_cassettes
from rollout_cassettes.demo.launcher import run_demo
from rollout_cassettes.demo.report import render, reporter
from rollout_cassettes.errors import CassetteError

__all__ = ["app"]

DEMO_PATH = Path("cassettes/demo-latest")

app = typer.Typer(
    name="rollout-cassettes",
    help="Record what the rollout engine produced, and replay it without the engine.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rollout-cassettes {rollout_cassettes.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Record what the rollout engine produced, and replay it without the engine."""


@app.command()
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
    try:
        with reporter(errors if json else console) as report:
            result = run_demo(
                path or DEMO_PATH, steps, overwrite=overwrite or path is None, report=report
            )
    except CassetteError as error:
        errors.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
        raise typer.Exit(1) from error
    if json:
        typer.echo(result.to_json())
    else:
        render(result, console)
    if not result.identical:
        raise typer.Exit(1)
