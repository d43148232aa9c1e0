"""Sessions in verl's fully asynchronous rollouter, and errors on their way through Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rollout_cassettes as rc

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run `rollouter_actor.py`: its directory, its output, and its line of JSON."""
    directory = tmp_path_factory.mktemp("rollouter")
    done = subprocess.run(
        [sys.executable, "-m", "tests.verl.rollouter_actor", directory / "assets", directory],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1200,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"fit"')]
    assert lines, done.stdout[-5000:]
    return directory, done.stdout, json.loads(lines[0])


def test_the_rollouters_fit_opens_a_session_in_its_actor(run):
    """Though Ray had copied its methods; the path counts from where the training was started."""
    directory, output, told = run
    assert "MessageQueue client not set" in told["fit"]
    path = directory / "fully-async"
    (line,) = (line for line in output.splitlines() if "recording all steps" in line)
    assert "FullyAsyncRollouter" in line
    assert f"to {path}, as cassettes in verl's configuration says" in line
    with pytest.raises(rc.StepNotRecordedError):
        rc.open_cassette(path)[1]


def test_an_error_comes_through_ray_as_it_is(run):
    """Of its class, with its attributes, and readable: what, where, and how to mend it."""
    error = run[2]["mismatch"]
    assert (error["step"], error["row"], error["field"]) == (1, 0, "text")
    assert "The live request is not the one recorded for step 1" in error["text"]
    assert "on_mismatch='warn'" in error["text"]


def test_a_relative_path_is_refused_in_an_actor_where_nobody_made_it_absolute(run):
    """Its working directory is Ray's choice."""
    assert "the path here is relative" in run[2]["relative"]
