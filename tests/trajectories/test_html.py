"""One trajectory, as a notebook shows it."""

from __future__ import annotations

import numpy as np

from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.html import trajectory_html


class Counted(np.ndarray):
    """An array that counts how often all of it is made a list."""

    lists = 0

    def tolist(self):
        Counted.lists += 1
        return super().tolist()


def test_figures_of_tokens_are_read_once_and_not_for_each_token():
    """Else a response of 32,000 tokens takes seconds, whenever a cell shows a step."""
    log_probs = np.full(500, -0.5).view(Counted)
    made = trajectory_html(Trajectory(response_ids=np.arange(500), log_probs=log_probs))
    assert "token 499, id 499, log-prob -0.5000" in made
    assert Counted.lists < 10
