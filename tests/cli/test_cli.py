"""The command line, as a user types it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

import rollout_cassettes as rc
from tests.cli.program import DEMO


def run(*arguments, **options):
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rollout_cassettes", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **options,
    )


def test_it_says_its_version():
    """The one of the package."""
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"rollout-cassettes {rc.__version__}\n")


def test_without_a_command_it_shows_them():
    """Help, and the exit status of a usage error."""
    done = run()
    assert done.returncode == 2
    assert "demo" in done.stdout + done.stderr


def test_a_terminal_that_lacks_characters_shows_the_others():
    """Spark lines, and whatever a model wrote, are no reason for a traceback."""
    done = run("show", str(DEMO), env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "steps 1-3" in done.stdout


def test_help_says_what_the_demo_does_and_needs():
    """Each option with its default."""
    text = " ".join(run("demo", "--help").stdout.split())
    for part in ("--path", "demo-latest", "--steps", "--overwrite", "--json", "status 1"):
        assert part in text


@pytest.mark.parametrize("arguments", [["demo", "--steps", "0"], ["demo", "--stps", "2"], ["tape"]])
def test_unknown_words_and_options_are_refused(arguments):
    """With the exit status of a usage error, and without a traceback."""
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_demo_refuses_to_overwrite_a_cassette(tmp_path):
    """It says where it is and what to do, before anything is started."""

    @rc.adapters.function()
    def rollout():
        return 1

    with rc.record(path=tmp_path / "mine"):
        rollout()
    done = run("demo", "--path", str(tmp_path / "mine"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    installed = importlib.util.find_spec("verl") is not None
    fix = "--overwrite" if installed else "pip install 'rollout_cassettes[verl]'"
    assert fix in done.stderr
