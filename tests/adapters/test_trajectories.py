"""How each adapter's recordings are read as trajectories; no framework is needed."""

from __future__ import annotations

import logging

import numpy as np

import rollout_cassettes as rc
from rollout_cassettes.adapters import Exchange
from rollout_cassettes.trajectories import Trajectory
from tests.docs.blocks import ROOT


def test_verl_v1_on_the_committed_cassette():
    """Rows without padding, prompts numbered as they were submitted, rewards by token."""
    interaction = rc.open_cassette(ROOT / "cassettes" / "demo")[2]
    uids = rc.open_cassette(interaction.path.parent, numpy=True)[2].request
    rows = interaction.trajectories
    assert len(rows) == 16
    for number, row in enumerate(rows):
        assert (row.step, row.phase, row.row) == (2, "train", number)
        assert row.uid == uids[0]["uid"][row.group]
        lengths = {len(each) for each in (row.response_ids, row.mask, row.log_probs, row.rewards)}
        assert lengths == {row.response_length}
        assert row.score == row.rewards.sum()
        assert row.prompt[0]["role"] == "user"
        assert row.metadata["reward_model"]["ground_truth"]
    assert sorted(row.place for row in rows) == [(g, s, 0) for g in range(4) for s in range(4)]


def test_verl_v0_is_read_without_its_padding():
    """Prompts are padded on the left, responses on the right; the mask of tools has zeros inside."""
    attention = np.array([[0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
    response = {
        "output": {
            "batch": {
                "prompts": np.array([[0, 1, 2], [3, 4, 5]]),
                "responses": np.array([[6, 7, 0], [8, 9, 10]]),
                "response_mask": np.array([[1, 1, 0], [1, 0, 0]]),
                "input_ids": np.zeros((2, 6), int),
                "attention_mask": attention,
                "rollout_log_probs": np.zeros((2, 3), np.float32),
                "rm_scores": np.array([[0, 0.5, 0], [0, 0, 1]], np.float32),
            },
            "non_tensor_batch": {"turns": np.array([2, 4])},
            "meta_info": {},
        },
        "echoed": ["uid"],
        "order": ["turns", "uid"],
        "added": {},
    }
    columns = {"uid": np.array(["b", "a"], object), "raw_prompt": np.array(["x", "y"], object)}
    request = {"batch": None, "non_tensor_batch": columns, "meta_info": {}}
    first, second = rc.adapters.VerlV0().trajectories(Exchange(request, response))
    assert first.prompt_ids.tolist() == [1, 2]
    assert first.response_ids.tolist() == [6, 7]
    assert second.response_ids.tolist() == [8, 9, 10]
    assert second.mask.tolist() == [1, 0, 0]
    assert (first.score, second.score) == (0.5, 1.0)
    assert (first.uid, first.group, first.prompt, first.metadata) == ("b", 0, "x", {"turns": 2})


def test_trl_with_tools():
    """Their tokens have no log-probs, and are masked; a completion of several messages is kept."""
    turns = [{"role": "assistant", "content": "2"}, {"role": "tool", "content": "3"}]
    completions = [turns, [{"role": "assistant", "content": "4"}]]
    ids, mask, log_probs = [[7, 8], [9]], [[1, 0], [1]], [[-0.5, None], [-0.25]]
    output = ([[1], [1]], ids, mask, completions, log_probs, {"bonus": [3, 4]}, None, [])
    request = {"rows": [{"prompt": "a"}, {"prompt": "a"}], "num_generations": 2}
    first, second = rc.adapters.TrlTrainer().trajectories(Exchange(request, {"output": output}))
    assert (first.prompt, first.response, second.response) == ("a", "2\n\n3", "4")
    assert first.mask.tolist() == [1, 0]
    assert first.log_probs[0] == -0.5
    assert np.isnan(first.log_probs[1])
    assert first.metadata == {"bonus": 3, "completion": turns}
    assert second.metadata == {"bonus": 4}
    assert [(row.group, row.session) for row in (first, second)] == [(0, 0), (0, 1)]


def test_trl_scored_with_several_rewards():
    """They are weighted as the trainer does; one that is not told of a row is left out."""
    output = {
        "prompt_ids": np.array([[0, 1], [2, 3]]),
        "prompt_mask": np.array([[0, 1], [1, 1]]),
        "completion_ids": np.array([[4, 5, 0], [6, 7, 8]]),
        "completion_mask": np.array([[1, 1, 0], [0, 0, 0]]),
        "tool_mask": np.array([[1, 0, 1], [0, 0, 0]]),
        "sampling_per_token_logps": np.array([[-1.0, 0.0, 0.0], [-1.0, -2.0, -3.0]]),
        "advantages": np.array([0.5, -0.5]),
    }
    logs = {
        "completion": ["of another", "a", "b"],
        "rewards": {"length": [9.0, 1.0, 2.0], "form": [9.0, 3.0, float("nan")]},
    }
    response = {
        "output": output,
        "buffers": {"logs": logs},
        "logged": 1,
        "reward_weights": [1.0, 2.0],
    }
    request = {"rows": [{"prompt": "x", "response": "gold"}] * 2, "num_generations": 1}
    adapter = rc.adapters.TrlTrainer("scored")
    first, second = adapter.trajectories(Exchange(request, response))
    assert (first.response, second.response) == ("a", "b")
    assert (first.score, second.score) == (7.0, 2.0)
    assert (first.prompt_ids.tolist(), first.response_ids.tolist()) == ([1], [4, 5])
    assert (first.mask.tolist(), first.log_probs.tolist()) == ([1, 0], [-1.0, 0.0])
    assert (second.response_ids.tolist(), second.mask.tolist()) == ([6, 7, 8], [0, 0, 0])
    assert first.metadata["response"] == "gold"
    cut = adapter.trajectories(Exchange(request, {**response, "logged": None}))
    assert [(row.response, row.score) for row in cut] == [(None, None)] * 2


def test_an_adapter_of_yours_says_how_it_is_read(tmp_path):
    """By the name that is in the manifest; it reads plain values."""

    class Mine(rc.adapters.VerlV0):
        name = "tests.mine"
        entry_points = ()

        def trajectories(self, recorded):
            return [Trajectory(response=text) for text in recorded.response["mine"]]

    rc.adapters.register(Mine())
    _record(tmp_path, "tests.mine", {"mine": ["a", "b"]})
    rows = rc.open_cassette(tmp_path)[1].trajectories
    assert [row.response for row in rows] == ["a", "b"]


def test_what_an_adapter_can_not_read_has_no_rows(tmp_path, caplog):
    """And a warning says so: it was left out of the recording, or is laid out otherwise."""
    _record(tmp_path, "verl_v1", {"data": "something else"})
    with caplog.at_level(logging.WARNING):
        assert rc.open_cassette(tmp_path)[1].trajectories == []
    assert "not as verl_v1 has them" in caplog.text


def test_they_share_no_memory_with_the_response(tmp_path):
    """A loss may be computed in place, and what is looked at is still what was recorded."""
    import torch

    _record(tmp_path, "memory", {"responses": torch.tensor([[1, 2]])})
    interaction = rc.open_cassette(tmp_path)[1]
    interaction.response["responses"].zero_()
    assert interaction.trajectories[0].response_ids.tolist() == [1, 2]


def _record(path, name, response):
    """Make a cassette of one call, as if an adapter of that name had recorded it."""
    from rollout_cassettes.cassette.manifest import Manifest
    from rollout_cassettes.cassette.packed import Packed
    from rollout_cassettes.cassette.tree import split
    from rollout_cassettes.cassette.writer import Writer

    parts = {part: split(v, part) for part, v in {"request": [], "response": response}.items()}
    tensors = {n: t for part in parts.values() for n, t in part.tensors.items()}
    trees = Packed.pack({part: found.skeleton for part, found in parts.items()}, "zstd")
    writer = Writer(path)
    writer.write(
        rc.Key(1),
        tensors,
        lambda entry: Manifest(
            step=1,
            step_kind="call",
            phase="train",
            index=0,
            rank=0,
            adapter=name,
            entry_point="a:b",
            versions={},
            tensors=entry,
            trees=trees,
            fingerprint=None,
            omissions=[],
            recorded_at="2026-01-01T00:00:00+00:00",
            host="here",
            seconds=1.0,
        ),
    )
    writer.close()
