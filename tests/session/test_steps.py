"""What `steps=` may be, and which steps it covers."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rollout_cassettes as rc
from rollout_cassettes.errors import spans
from rollout_cassettes.session.steps import Steps, step_number


@pytest.mark.parametrize(
    ("steps", "listed"),
    [
        (3, [3]),
        (0, [0]),
        (range(1, 4), [1, 2, 3]),
        ([3, 1, 3], [1, 3]),
        ({2, 5}, [2, 5]),
        ((step for step in (4, 2)), [2, 4]),
        ([], []),
        ("1-3,8", [1, 2, 3, 8]),
        (" 2 , 4 - 5 ", [2, 4, 5]),
        ("7-7", [7]),
        (np.int64(3), [3]),
        (np.array(3), [3]),
        (np.arange(1, 3), [1, 2]),
        ([np.int32(1), 2], [1, 2]),
        (torch.tensor(3), [3]),
        (torch.tensor([1, 2]), [1, 2]),
    ],
)
def test_steps_that_can_be_listed(steps, listed):
    selection = Steps.parse(steps)
    assert selection.listed == listed
    assert [step for step in range(10) if selection.covers(step)] == listed
    assert all(type(step) is int for step in selection.listed)


def test_none_is_all_steps():
    selection = Steps.parse(None)
    assert selection.covers(0)
    assert selection.covers(10**9)
    assert (selection.listed, selection.text) == (None, "all")


def test_a_predicate_selects():
    def is_even(step):
        return np.bool_(step % 2 == 0)

    selection = Steps.parse(is_even)
    assert [step for step in range(5) if selection.covers(step)] == [0, 2, 4]
    assert selection.covers(2) is True
    assert (selection.listed, selection.text) == (None, "selected by is_even")


@pytest.mark.parametrize("steps", ["1-", "-1", "a", "", "1;2", "1,,2", "1.5", "²"])
def test_text_that_can_not_be_read_is_refused(steps):
    with pytest.raises(ValueError, match="written like '1-5,8'"):
        Steps.parse(steps)


def test_text_that_runs_backwards_is_refused():
    with pytest.raises(ValueError, match="'3-1' run backwards"):
        Steps.parse("2,3-1")


@pytest.mark.parametrize(
    "steps", [True, 2.0, 2.5, object(), b"12", [1, True], [1.0], ["1"], [None], torch.tensor(1.5)]
)
def test_what_is_no_step_is_refused(steps):
    with pytest.raises(TypeError, match="whole number"):
        Steps.parse(steps)


@pytest.mark.parametrize("steps", [-1, [1, -2], np.int64(-3)])
def test_negative_steps_are_refused(steps):
    with pytest.raises(ValueError, match="0 or more"):
        Steps.parse(steps)


@pytest.mark.parametrize("steps", [itertools.count(), range(10**12), "1-1000000000000"])
def test_more_steps_than_can_be_listed_are_refused_at_once(steps):
    with pytest.raises(ValueError, match="a predicate"):
        Steps.parse(steps)


@pytest.mark.parametrize("path", ["cassettes/gsm8k", "run1", Path("run1")])
def test_a_path_given_for_steps_is_recognised(path):
    with pytest.raises((TypeError, ValueError), match=r"a path is given as path=\.\.\."):
        rc.record(path)


@given(st.sets(st.integers(0, 10**6), min_size=1, max_size=30))
def test_steps_are_written_so_that_they_can_be_read(steps):
    assert Steps.parse(spans(steps)).listed == sorted(steps)
    assert Steps.parse(steps).text == spans(steps)


@given(st.integers(0, 2**62))
def test_a_step_number_is_a_plain_integer(step):
    assert step_number(np.int64(step)) == step
    assert type(step_number(np.int64(step))) is int
