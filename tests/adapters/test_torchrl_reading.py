"""Batches of torchrl's as people see them, from plain values: torchrl is not needed."""

from __future__ import annotations

import numpy as np
import pytest

from rollout_cassettes.adapters import Exchange, TorchrlCollector


def instance(**fields):
    """Return what an instance of a tensorclass is as plain values."""
    tensors = {name: value for name, value in fields.items() if value is not None}
    others = {name: None for name, value in fields.items() if value is None}
    return {"_tensordict": tensors, "_non_tensordict": others}


def turn(query="Why?", reply="So.", reward=(0.5,)):
    return {
        "query": query,
        "history": instance(
            prompt=instance(role=["user"], content=[query]),
            response={
                "_tensordict": [{"role": "assistant", "content": reply, "is_complete": True}],
                "_non_tensordict": {},
            },
            full=None,
        ),
        "text": instance(prompt=f"<user>{query}", response=reply),
        "tokens": instance(prompt=np.array([0, 1, 2]), response=np.array([3, 4, 0])),
        "masks": instance(all_attention_mask=np.array([0, 1, 1, 1, 1, 0], bool)),
        "log_probs": instance(response=np.array([-1.0, -2.0, 0.0], np.float32)),
        "done": np.array([False]),
        "next": {"reward": np.array(reward, np.float32), "done": np.array([True])},
    }


def read(batch):
    return TorchrlCollector().trajectories(Exchange({}, {"output": batch}))


def test_each_turn_is_a_trajectory():
    """Stacks of any number of dimensions are gone through; padding is left out."""
    found = read([[turn("a"), turn("b")], [turn("a"), turn("a", reward=(1.0, 2.0))]])
    assert [(row.row, row.group, row.session) for row in found] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 0, 1),
        (3, 0, 2),
    ]
    assert found[0].prompt == [{"role": "user", "content": "a"}]
    assert found[0].response == "So."
    assert found[0].prompt_ids.tolist() == [1, 2]
    assert found[0].response_ids.tolist() == [3, 4]
    assert found[0].log_probs.tolist() == [-1.0, -2.0]
    assert (found[0].score, found[0].rewards) == (0.5, None)
    assert (found[3].score, found[3].rewards.tolist()) == (3.0, [1.0, 2.0])
    assert found[0].metadata == {"query": "a"}


@pytest.mark.parametrize("missing", ["history", "text", "tokens", "masks", "log_probs"])
def test_what_a_policy_leaves_out_is_missing(missing):
    row = turn()
    del row[missing]
    (found,) = read([row])
    assert found.score == 0.5


def test_a_batch_of_columns_is_read_row_by_row():
    """A tensordict that is not a stack has columns, and so have the instances in it."""
    batch = {
        "query": ["a", "b"],
        "tokens": instance(prompt=np.array([[1], [2]]), response=np.array([[3], [4]])),
        "done": np.zeros((2, 1), bool),
        "next": {"reward": np.array([[0.5], [1.5]])},
    }
    assert [(row.response_ids.tolist(), row.score) for row in read(batch)] == [
        ([3], 0.5),
        ([4], 1.5),
    ]
