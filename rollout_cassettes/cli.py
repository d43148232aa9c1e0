"""The command line: ``rollout-cassettes``."""

from __future__ import annotations

import typer

app = typer.Typer(name="rollout-cassettes", no_args_is_help=True)
