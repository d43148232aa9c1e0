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


def test_the_command_line_reaches_the_actor(tmp_path):
    """The first actor records, and the second replays without a call of the function."""
    path = tmp_path / "cassette"
    command = [sys.executable, "-m", "rollout_cassettes", "run", "--use", str(path), "--"]
    command += [sys.executable, "-m", "tests.slime.manager", FUNCTION]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    live, again = json.loads(done.stdout.splitlines()[-1])
    assert again["outputs"] == live["outputs"]
    assert (live["calls"], again["calls"]) == (3, 0)
    assert rc.open_cassette(path).steps == [0, 1, 2]
