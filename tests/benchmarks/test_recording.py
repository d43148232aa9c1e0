"""The benchmark runs, and holds what it says of bytes; seconds are never asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("recording.py")

pytestmark = [pytest.mark.verl, pytest.mark.slow]


def test_a_step_takes_a_45th_and_an_11th_of_the_bytes_that_verl_writes():
    """The padded DataProto of V0, and the jagged payload of V1; at full size."""
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import recording\n"
        "for ours, verl in recording.run(prompts=128, rounds=1).values():\n"
        "    print('ratio', verl.nbytes / ours.nbytes)"
    )
    lines = run("-c", code)
    ratios = [float(line.split()[1]) for line in lines if line.startswith("ratio")]
    assert len(ratios) == 2
    assert ratios[0] >= 45
    assert ratios[1] >= 11


def test_the_script_prints_a_table_of_both_sides():
    """A smoke test, with a small step."""
    text = "\n".join(run(str(SCRIPT), "--prompts", "2", "--rounds", "1"))
    assert "DataProto" in text
    assert "TensorDict" in text


def run(*arguments):
    """Run Python in a process of its own, and give the lines that it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
