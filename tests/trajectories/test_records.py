"""Trajectories as records and as the columns of tables."""

from __future__ import annotations

from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.records import columns


def test_half_of_a_surrogate_pair_is_escaped_in_a_table():
    """Arrow, and pandas with it, holds UTF-8 alone; JSON may give half a pair to a prompt."""
    halves = [{"role": "user", "content": "\ud83d"}]
    rows = [Trajectory(prompt=halves, response="\ud83d", metadata={"note": None}), Trajectory()]
    made = columns(rows)
    assert made["response"] == ["\\ud83d", None]
    assert "\\ud83d" in made["prompt"][0]
    assert made["note"] == [None, None]


def test_a_chat_without_messages_asks_nothing():
    row = Trajectory(prompt=[])
    assert (row.question, row.prompt_text, row.messages) == (None, "", [])
