"""The program, before it has commands."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

import rollout_cassettes

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
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Record what the rollout engine produced, and replay it without the engine."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # its encoding may lack what models write
            stream.reconfigure(errors="replace")
