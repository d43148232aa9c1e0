"""The whole of verl: its own task runner, Ray, FSDP2; recorded, and replayed in a new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_batches, assert_equal_values, untimed

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Train while recording, then train again from the cassette, each in a process of its own."""
    directory = tmp_path_factory.mktemp("full")
    actions = ("record", "replay", "replay-off")
    return {action: train(action, directory) for action in actions} | {
        "cassette": directory / "cassette"
    }


def train(action, directory):
    """Run `full_training.py`, and give what it left behind."""
    output = directory / action
    output.mkdir()
    arguments = [action, directory / "cassette", directory / "assets", output]
    done = subprocess.run(
        [sys.executable, "-m", "tests.verl.full_training", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return output


def load(output):
    """Read what a run kept; it is our own, so it may be unpickled."""
    return torch.load(output / "run.pt", weights_only=False)


def test_three_steps_were_recorded_and_replayed(runs):
    """In the process that runs the trainer; no training request reached the engine."""
    live, again = load(runs["record"]), load(runs["replay"])
    assert rc.open_cassette(runs["cassette"]).steps == [1, 2, 3]
    assert live["summary"].startswith("3 steps recorded")
    assert again["summary"].startswith("3 steps replayed, 0 generated live")
    assert (live["training_requests"], again["training_requests"]) == (24, 0)


def test_without_an_engine_no_server_is_among_the_actors(runs):
    """While the others have one; it stands for vLLM's servers."""
    server = "hf_cpu_server_0"
    with_server = {a: server in load(runs[a])["actors"] for a in ("record", "replay", "replay-off")}
    assert with_server == {"record": True, "replay": True, "replay-off": False}


@pytest.mark.parametrize("part", ["model", "optim"])
@pytest.mark.parametrize("action", ["replay", "replay-off"])
def test_parameters_and_optimizer_state_are_equal_to_the_bit(runs, part, action):
    """As verl's checkpoint manager saved them after the last step."""
    live, again = (leaves(checkpoint(runs[each], part)) for each in ("record", action))
    assert live.keys() == again.keys()
    assert sum(isinstance(leaf, torch.Tensor) for leaf in live.values()) >= 27
    for name, leaf in live.items():
        assert_equal_values(leaf, again[name], name)


def test_the_weights_after_every_step_are_equal_to_the_bit(runs):
    """As the engine was sent them: versions 0 (before training) to 3."""
    live, again = load(runs["record"]), load(runs["replay"])
    assert sorted(live["digests"]) == [0, 1, 2, 3]
    assert len(set(live["digests"].values())) == 4
    assert live["digests"] == again["digests"]


def test_every_logged_metric_is_equal(runs):
    """Validation included; apart from clocks and memory."""
    live, again = load(runs["record"]), load(runs["replay"])
    assert untimed(live["metrics"]) == untimed(again["metrics"])
    assert len(untimed(live["metrics"])[3]) > 50


def test_every_batch_handed_to_the_actor_is_equal(runs):
    """Rows in order, every field of every row, keys and tags; uids are new."""
    from tests.verl.actor_batch import ActorBatch

    live, again = load(runs["record"]), load(runs["replay"])
    assert len(live["batches"]) == len(again["batches"]) == 3
    for left, right in zip(live["batches"], again["batches"], strict=True):
        assert_equal_batches(ActorBatch(**left), ActorBatch(**right))


def checkpoint(output, part):
    """Read one file of verl's checkpoint; it is our own, so it may be unpickled."""
    actor = output / "checkpoints" / "global_step_3" / "actor"
    return torch.load(actor / f"{part}_world_size_1_rank_0.pt", weights_only=False)


def leaves(value, path=""):
    """Flatten nested containers to their leaves by path; sharded tensors to what is here."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {path: value.to_local() if hasattr(value, "to_local") else value}
    return {
        name: leaf for key, item in items for name, leaf in leaves(item, f"{path}/{key}").items()
    }
