"""What `export --to jsonl` writes, beside what verl itself writes of the same rollouts."""

from __future__ import annotations

import json

import pytest

import rollout_cassettes as rc
from tests.cli.program import DEMO, invoke

pytestmark = pytest.mark.verl


def test_the_columns_are_those_of_verl(assets, tmp_path):
    """`trainer.rollout_data_dir`, by verl's own function, from the same tokens and scores."""
    from transformers import AutoTokenizer
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(assets.model)
    rows = sorted(rc.open_cassette(DEMO)[2].trajectories, key=lambda row: row.key)
    PPOTrainer._write_generations(
        [tokenizer.decode(row.prompt_ids) for row in rows],
        [tokenizer.decode(row.response_ids) for row in rows],
        [row.metadata["reward_model"]["ground_truth"] for row in rows],
        [row.score for row in rows],
        {"uid": [row.key for row in rows]},
        str(tmp_path / "verl"),
        2,
    )
    invoke("export", DEMO, "--to", "jsonl", "--output", tmp_path / "o", "--tokenizer", assets.model)
    ours, theirs = (
        {row["uid"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}
        for path in (tmp_path / "o" / "2.jsonl", tmp_path / "verl" / "2.jsonl")
    )
    assert len(theirs) == 16
    for uid, row in theirs.items():
        assert list(ours[uid])[: len(row)] == list(row)
        assert {name: ours[uid][name] for name in row} == row
