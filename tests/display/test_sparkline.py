"""Spark lines."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.display.shading import HTML, LEGEND, TERMINAL, shade
from rollout_cassettes.display.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([1.0], "▄"),
        ([2.0, 2.0], "▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([None, 1.0, math.nan, 2.0, math.inf], "·▁·█·"),
        ([None, None], "··"),
    ],
)
def test_they_go_from_the_smallest_to_the_largest(values, line):
    assert sparkline(values) == line


def test_more_figures_than_room_are_means_of_neighbours():
    assert sparkline([0, 0, 10, 10, 20, 20], 3) == "▁▅█"


@given(st.lists(st.none() | st.floats()), st.integers(1, 50))
def test_any_figures_can_be_drawn(values, width):
    assert len(sparkline(values, width)) == min(len(values), width)


def test_the_less_probable_a_token_the_darker():
    """There are as many styles as shades, and none where nothing is known."""
    shades = [shade(math.log(probability)) for probability in (0.001, 0.05, 0.2, 0.8, 0.95)]
    assert shades == [0, 1, 2, 3, 4]
    assert len(HTML) == len(TERMINAL) == len(LEGEND) == 5
    assert [shade(math.nan), shade(0.0), shade(0.1), shade(-math.inf)] == [4, 4, 4, 0]
