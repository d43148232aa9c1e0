"""Rollouts in a Ray actor, where no with-block of the script's reaches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rollout_cassettes as rc

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray"),
]

ROOT = Path(__file__).parents[2]
FUNCTION = "rollout_cassettes.adapters.slime.generate_rollout"


def run(*options):
    """Train by the command that the documentation shows."""
    command = [sys.executable, "-m", "rollout_cassettes", "run", *options]
    command += ["--", sys.executable, "-m", "tests.slime.manager", FUNCTION]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_command_line_reaches_the_actor(tmp_path):
    """It records there, and replays there without a call of the function."""
    path = tmp_path / "cassette"
    live = run("--record", str(path))
    assert rc.open_cassette(path).steps == [0, 1, 2]
    again = run("--replay", str(path))
    assert again["outputs"] == live["outputs"]
    assert live["calls"]
    assert again["calls"] == []
