"""A hash that is equal for values that are equal to the bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from rollout_cassettes.cassette.digest import digest
from tests import strategies
from tests.cassette.round_trip import round_trip, stored


@settings(max_examples=60)
@given(strategies.batches)
def test_a_value_and_its_copy_have_one_digest(batch):
    """Whatever it holds, and wherever that is in memory."""
    assert digest(batch) == digest(round_trip(batch))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint8", "float16", "float64"])
def test_an_array_that_was_pickled_keeps_its_digest(dtype):
    """Ray pickles what passes between processes, and an unpickled dtype is a copy."""
    array = np.ones(3, dtype)
    again = pickle.loads(pickle.dumps(array))
    assert digest(again) == digest(array)
    assert "dtype" not in stored(again)[0]  # any safetensors reader knows it


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2, 3), torch.ones(3, 2)),
        (torch.ones(2), torch.ones(2).numpy()),
        (np.array(["a"], dtype=object), np.array(["a"])),
        ("\ud800", "?"),
    ],
    ids=repr,
)
def test_values_that_differ_have_two(left, right):
    """In type, sign, container, order, dtype or shape."""
    assert digest(left) != digest(right)


def test_memory_and_gradients_make_no_difference():
    """They are no part of the value."""
    one = torch.arange(6.0).view(2, 3)
    assert digest([one, one]) == digest([one, one.clone()])
    assert digest(one) == digest(one.T.contiguous().T)
    assert digest(one) == digest(one.clone().requires_grad_())
