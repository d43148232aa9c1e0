"""The table of a batch's trajectories, and the heading of one."""

from __future__ import annotations

from rollout_cassettes.trajectories import from_columns
from rollout_cassettes.trajectories.sheets import rows_sheet
from rollout_cassettes.trajectories.view import title_of


def test_outputs_of_a_session_are_told_apart():
    """As the turns of an agent; where each session has one, there is no such column."""
    columns = {"uid": ["a", "a", "a"], "session": [0, 0, 1], "response": ["x", "y", "z"]}
    rows = from_columns(columns, outputs=[0, 1, 0])
    sheet = rows_sheet(rows)
    assert sheet.columns[:4] == ["row", "group", "session", "output"]
    assert [cells[:4] for cells in sheet.rows] == [
        ("0", "0", "0", "0"),
        ("1", "0", "0", "1"),
        ("2", "0", "1", "0"),
    ]
    assert title_of(rows[1]) == "step 0 · row 1 · group 0, session 0, output 1"
    assert "output" not in rows_sheet(rows[::2]).columns
