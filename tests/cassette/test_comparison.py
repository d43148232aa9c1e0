"""Where two plain values first differ."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.cassette.comparison import first_difference

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.frozensets(st.text(max_size=2))
    | st.lists(st.floats(width=32), max_size=4).map(lambda items: np.array(items, np.float32))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(values)
def test_a_copy_is_equal(value):
    assert first_difference(value, copy.deepcopy(value), "x") is None


@given(values, values)
def test_it_makes_no_difference_which_is_first(left, right):
    one, other = first_difference(left, right, "x"), first_difference(right, left, "x")
    assert (one is None) == (other is None)


@pytest.mark.parametrize(
    ("left", "right", "field", "token", "what"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "x.a[1].b", None, "2, and 3"),
        ({"a": 1}, {}, "x.a", None, "1, and nothing"),
        ([1], [1, 2], "x", None, "1 items, and 2"),
        (1, True, "x", None, "1, and True"),
        (1, 1.0, "x", None, "1, and 1.0"),
        (np.zeros(3), np.array([0, 0, 1.0]), "x", 2, "0.0, and 1.0"),
        (np.zeros(2), np.zeros(3), "x", 2, "f64[2], and f64[3]"),
        (np.array([1, 0]), np.array([2, 0, 0]), "x", 0, "1, and 2"),
        (np.float32(1), np.float32(2), "x", None, "1.0, and 2.0"),
        (np.array(["a", {}], object), np.array(["a", 1], object), "x[1]", None, "{}, and 1"),
        (np.zeros((2, 2)), np.eye(2), "x", 0, "[0.0, 0.0], and [1.0, 0.0]"),
        (np.zeros(()), np.zeros(1), "x", None, "f64[], and f64[1]"),
        (np.zeros(1), np.zeros(()), "x", None, "f64[1], and f64[]"),
    ],
)
def test_the_first_place_is_named(left, right, field, token, what):
    found = first_difference(left, right, "x")
    assert (found.field, found.token, found.what) == (field, token, what)
