"""Trainings in two processes under accelerate, with gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollout_cassettes as rc

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_two_processes_replay_what_they_recorded(tmp_path):
    """Into one cassette, each its own rows; equal to the bit, in both scopes."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launch, ROOT / "tests" / "trl" / "distributed.py", tmp_path],
        env=environment | {"HF_DATASETS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for scope in ("generated", "scored"):
        for rank in range(2):
            found = json.loads((tmp_path / f"{scope}-{rank}.json").read_text())
            live, again = found.pop("generations")
            assert found == {"equal": True, "logs": True, "processes": 2}
            assert live > again == 0
        cassette = rc.open_cassette(tmp_path / scope)
        assert [key.rank for key in cassette.keys] == [0, 1] * 8
        assert [each.rank for each in cassette.interactions(0)] == [0, 1]
        completions = [completion_ids(each.response["output"]) for each in cassette.interactions(0)]
        assert completions[0] != completions[1]
    told_as_they_were(cassette, tmp_path / "of-rank-0" / "assets" / "model")


def told_as_they_were(scored, model):
    """Assert that each row has its own text and reward: all processes log those of all."""
    from transformers import AutoTokenizer

    from tests.trl.training import digits

    decode = AutoTokenizer.from_pretrained(model).decode
    rows = [row for each in scored.interactions() for row in each.trajectories]
    assert len(rows) == 8 * 2 * 2
    texts = [[{"content": row.response}] for row in rows]
    rewards = digits(texts, [row.metadata["ground_truth"] for row in rows])
    assert [row.score for row in rows] == pytest.approx(rewards)
    for row in rows:
        assert decode(row.response_ids, skip_special_tokens=True) == row.response


def completion_ids(output):
    ids = output["completion_ids"] if isinstance(output, dict) else output[1]
    return [list(map(int, each)) for each in ids]
