"""A batch of trajectories as padded tensors."""

from __future__ import annotations

import numpy as np

from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.batch import to_batch


def test_a_row_without_a_mask_leaves_those_of_others_as_they_are():
    """A tool's tokens would be trained on, if one row of many has no tool."""
    with_tool = Trajectory(response_ids=np.array([1, 2, 3]), mask=np.array([1, 0, 1]))
    without = Trajectory(response_ids=np.array([4, 5]))
    batch = to_batch([with_tool, without])
    assert batch.response_mask.tolist() == [[1, 0, 1], [1, 1, 0]]
