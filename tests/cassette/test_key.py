"""Under which name an interaction is filed."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.cassette import Key

keys = st.builds(
    Key,
    st.integers(0, 10**18 - 1),
    st.sampled_from(["train", "val", "eval", "rank", "test-2", "msgpack", "safetensors"]),
    st.integers(0, 20),
    st.integers(0, 20),
)


@given(keys)
def test_the_name_of_a_file_tells_its_key(key):
    assert Key.from_stem(key.stem) == key


@given(keys, keys)
def test_no_two_keys_have_one_name(left, right):
    assert (left.stem == right.stem) == (left == right)


@pytest.mark.parametrize(
    ("key", "stem"),
    [
        (Key(1), "step-000001"),
        (Key(0), "step-000000"),
        (Key(12345678), "step-12345678"),
        (Key(2, index=1), "step-000002.1"),
        (Key(2, "val"), "step-000002.val"),
        (Key(2, "val", 3, 7), "step-000002.val.3.rank7"),
        (Key(2, rank=7), "step-000002.rank7"),
    ],
)
def test_what_has_its_default_value_is_left_out(key, stem):
    assert key.stem == stem


@pytest.mark.parametrize(
    "stem",
    [
        "",
        "step-1",
        "step-0000001",
        "step-000001.",
        "step-000001.0",
        "step-000001.01",
        "step-000001.train",
        "step-000001.val.test",
        "step-000001.rank0",
        "step-000001.rank1.1",
        "step-000001.1.val",
        "step-000001.Val",
        "step-000001.rank\u0661",
        "step-\u0660\u0660\u0660\u0660\u0660\u0661",
        "step--00001",
        "../step-000001",
        "step-000001/..",
        "step-000001\n",
        "step-" + "1" * 19,
    ],
)
def test_other_names_are_no_interactions(stem):
    assert Key.from_stem(stem) is None


@given(st.text())
def test_any_name_may_lie_in_the_directory(name):
    key = Key.from_stem(f"step-000001.{name}")
    assert key is None or key.stem == f"step-000001.{name}"


@pytest.mark.parametrize(
    "key",
    [
        Key(-1),
        Key(1, index=-1),
        Key(1, rank=-1),
        Key(10**18),
        Key(1, ""),
        Key(1, "Val"),
        Key(1, "../x"),
        Key(1, "a.b"),
        Key(1, "rank1"),
        Key(1, "1"),
        Key(1, "val\n"),
    ],
    ids=repr,
)
def test_a_key_that_is_no_file_name_is_refused(key):
    with pytest.raises(ValueError, match="got"):
        _ = key.stem


@pytest.mark.parametrize("step", [np.int64(3), torch.tensor(3), np.uint8(3)])
def test_a_step_may_be_counted_with_any_integer(step):
    assert Key(step) == Key(3)
    assert type(Key(step).step) is int


@pytest.mark.parametrize("step", [1.0, "1", None])
def test_a_step_is_an_integer(step):
    with pytest.raises(TypeError):
        Key(step)


def test_keys_sort_in_the_order_of_a_run():
    """Training comes first within a step, whatever the other phases are called."""
    order = [
        Key(1),
        Key(1, rank=1),
        Key(1, index=1),
        Key(1, "eval"),
        Key(1, "val", 1),
        Key(2),
        Key(2, "eval"),
        Key(10),
    ]
    shuffled = random.Random(0).sample(order, len(order))
    assert sorted(shuffled) == order


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (Key(1), "step 1"),
        (Key(1, "val"), "step 1 (val)"),
        (Key(1, "val", 2, 3), "step 1 (val), interaction 2, rank 3"),
    ],
)
def test_a_key_reads_as_people_say_it(key, text):
    assert str(key) == text
