"""Fitting recorded rows to other batches."""

from __future__ import annotations

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.adapters.fitting import Groups, select


@pytest.mark.parametrize(
    ("recorded", "live", "rows"),
    [
        ((4, 2), (4, 2), [0, 1, 2, 3]),
        ((4, 2), (2, 2), [0, 1]),
        ((4, 2), (8, 2), [0, 1, 2, 3, 0, 1, 2, 3]),
        ((4, 2), (6, 2), [0, 1, 2, 3, 0, 1]),
        ((6, 3), (4, 2), [0, 1, 3, 4]),
        ((4, 2), (6, 3), [0, 1, 0, 2, 3, 2]),
        ((2, 4), (4, 4), [0, 1, 0, 1]),
        ((6, 4), (8, 4), [0, 1, 0, 1, 2, 3, 2, 3]),
        ((4, 2), (0, 2), []),
        ((0, 2), (0, 2), []),
    ],
)
def test_whole_groups_are_gone_through_again_or_left_out(recorded, live, rows):
    """Groups of another size are filled up, or cut; a group may be spread over processes."""
    assert Groups.of(*recorded).fitted(Groups.of(*live)) == rows


def test_of_no_rows_none_can_be_repeated():
    with pytest.raises(rc.CassetteError, match="2 rows are asked for"):
        Groups.of(0, 2).fitted(Groups.of(2, 2))


def test_what_has_a_value_for_each_row_is_selected():
    """Columns of a tuple, of a dict, and of a dict in a tuple; the rest stays as it is."""
    output = (
        [[1], [2, 3], [4]],
        None,
        {"env": ["a", "b", "c"], "seed": 7},
        torch.arange(6).view(3, 2),
        torch.tensor(5),
        [],
    )
    ids, none, extra, tensor, scalar, empty = select(output, [2, 0], 3)
    assert ids == [[4], [1]]
    assert none is None
    assert extra == {"env": ["c", "a"], "seed": 7}
    assert tensor.tolist() == [[4, 5], [0, 1]]
    assert scalar.item() == 5
    assert empty == []
