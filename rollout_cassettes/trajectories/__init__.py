"""One view of what was recorded, whichever framework it came from: trajectories, row by row.

All of it is read from plain containers and numpy arrays; neither torch nor a framework is needed.
Here is also what becomes of them: views, records, data frames, and batches of tensors.
"""

from rollout_cassettes.trajectories.columns import from_columns
from rollout_cassettes.trajectories.figures import Figures
from rollout_cassettes.trajectories.reading import read
from rollout_cassettes.trajectories.statistics import Statistics
from rollout_cassettes.trajectories.trajectory import Trajectory

__all__ = ["Figures", "Statistics", "Trajectory", "from_columns", "read"]
