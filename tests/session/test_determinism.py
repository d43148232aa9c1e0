"""A training from the cassette, in a new process, ends where the live one did: to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

ROOT = Path(__file__).parents[2]


class Training(NamedTuple):
    """A training that ended: how often it generated, and all that it left behind, as tensors."""

    generated: int
    left: dict[str, torch.Tensor]


def run(folder, *modes):
    """Train in each mode, in one process of its own for all of them."""
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("training.py"))]
    process = subprocess.run(
        [*command, str(folder), *modes],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    counts = json.loads(process.stdout)
    return {
        mode: Training(counts[mode], flatten(torch.load(folder / f"{mode}.pt"))) for mode in modes
    }


def flatten(tree, path=""):
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        name: tensor for key in tree for name, tensor in flatten(tree[key], f"{path}/{key}").items()
    }


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainings")
    first = run(folder, "live", "recorded", "requests_recorded")
    second = run(folder, "replayed", "replayed_without_rng", "requests_replayed")
    return first | second


def different(one, other):
    """Return the names of what two trainings left behind that is not equal to the bit."""
    assert one.left.keys() == other.left.keys()

    def bits(tensor):
        return tensor.contiguous().reshape(-1).view(torch.uint8)

    return {
        name for name in one.left if not torch.equal(bits(one.left[name]), bits(other.left[name]))
    }


def test_a_training_from_the_cassette_is_equal_to_the_bit(trainings):
    """Parameters, the optimizer's state, and the generators, with dropout after each rollout."""
    recorded, replayed = trainings["recorded"], trainings["replayed"]
    assert (recorded.generated, replayed.generated) == (4, 0)
    names = set(recorded.left)
    assert {"/parameters/head.weight", "/optimizer/0/exp_avg_sq", "/generators/torch"} <= names
    assert different(recorded, replayed) == set()


def test_so_it_is_where_requests_were_in_flight_together(trainings):
    recorded, replayed = trainings["requests_recorded"], trainings["requests_replayed"]
    assert (recorded.generated, replayed.generated) == (12, 0)
    assert different(recorded, replayed) == set()


def test_recording_changes_nothing_about_a_training(trainings):
    assert different(trainings["live"], trainings["recorded"]) == set()


def test_the_comparison_could_fail(trainings):
    """Without the generators put back, dropout alone leads the replay elsewhere."""
    assert "/parameters/head.weight" in different(
        trainings["recorded"], trainings["replayed_without_rng"]
    )
