"""Values in lines, for people."""

from __future__ import annotations

import numpy as np
import pytest

from rollout_cassettes.display.outline import outline

IDS = np.zeros((2, 8), np.int64)


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"ids": IDS, "step": 3}, ["ids  i64[2,8]", "step  3"]),
        ({"ids": [IDS[0], IDS[0, :5]]}, ["ids  i64[2,5..8]"]),
        ({"rows": [{"prompt": IDS}] * 2}, ["rows  2 x 1 field", "  prompt  i64[2,8]"]),
        ({"told": [1, "a", None]}, ["told  [1, 'a', None]"]),
        ({"shape": (2, 8)}, ["shape  [2, 8]"]),
        (
            (IDS, None, [["a"] * 3], {"mean": IDS[0]}),
            ["0  i64[2,8]", "1  None", "2  1 x ['a', 'a', 'a']", "3  1 field", "  mean  i64[8]"],
        ),
        ({"output": (IDS, IDS[0])}, ["output  2 items", "  0  i64[2,8]", "  1  i64[8]"]),
        ({"one": (IDS,)}, ["one  1 item", "  0  i64[2,8]"]),
        ({"pairs": [(IDS, 0.5)] * 3}, ["pairs  3 x 2 items", "  0  i64[2,8]", "  1  0.5"]),
        ({"many": tuple([IDS] * 20)}, ["many  i64[20,2,8]"]),
        ((), ["()"]),
    ],
)
def test_it_is_told_part_by_part(value, lines):
    """Items of a short tuple are different things, those of a list are alike."""
    told = [line.replace("\N{MULTIPLICATION SIGN}", "x") for line in outline(value)]
    assert told == lines
