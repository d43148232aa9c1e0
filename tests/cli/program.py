"""The program in this process: a second faster than in one of its own."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from rollout_cassettes.cli import app
from tests.docs.blocks import ROOT

DEMO = ROOT / "cassettes" / "demo"

TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
"""What makes a terminal of it. One kind for all tests: rich keeps the codes that it made first."""


def invoke(*arguments, status=0, width=200, environment=()):
    """Run a command, and check how it ends; the result has `stdout` and `stderr`."""
    runner = CliRunner(env={"COLUMNS": str(width), "TERM": "dumb", **dict(environment)})
    done = runner.invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done


def loaded(*arguments, status=0):
    """Run a command with `--json`, and give what it prints."""
    return json.loads(invoke(*arguments, "--json", status=status).stdout)
