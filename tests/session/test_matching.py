"""Fingerprints of requests, and the error for one that is not the recorded one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rollout_cassettes.cassette import Key
from rollout_cassettes.session.matching import digest, fingerprint, mismatch

HERE = Path("/cassettes/run")


def test_a_fingerprint_has_a_digest_for_each_row():
    rows = [{"prompt": "a"}, {"prompt": "b"}, {"prompt": "a"}]
    first, second, third = fingerprint(rows)
    assert first == third != second
    assert len(first) == 64


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("a", "b"),
        (1, 1.0),
        (1, True),
        ("1", 1),
        ([1], (1,)),
        (0.0, -0.0),
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(2), torch.zeros(2).double()),
        (torch.zeros(2, 1), torch.zeros(1, 2)),
        (torch.zeros(2), np.zeros(2, np.float32)),
        ({"a": 1}, {"b": 1}),
    ],
)
def test_values_that_differ_have_different_digests(value, other):
    assert digest(value) != digest(other)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (torch.arange(6).reshape(2, 3).T, torch.arange(6).reshape(2, 3).T.contiguous()),
        (torch.ones(2, requires_grad=True), torch.ones(2)),
        ([torch.ones(2)] * 2, [torch.ones(2), torch.ones(2)]),
        (float("nan"), float("nan")),
    ],
)
def test_values_that_are_equal_to_the_bit_have_equal_digests(value, other):
    assert digest(value) == digest(other)


def test_there_is_no_error_where_nothing_differs():
    """Even where the fingerprints do, as those of an older version might."""
    assert mismatch(HERE, Key(2), [{"prompt": "a"}], [{"prompt": "a"}]) is None


def test_the_error_carries_what_it_says():
    recorded, live = [{"a": 1}, {"a": 2, "b": 3}], [{"a": 1}, {"a": 2, "b": 4}]
    error = mismatch(HERE, Key(2, "val"), recorded, live)
    assert (error.path, error.step, error.phase) == (HERE, 2, "val")
    assert (error.row, error.field, error.recorded, error.live) == (1, "b", 3, 4)
    assert str(error) == (
        "The live request is not the one recorded for step 2 (val) in /cassettes/run: "
        "row 1, field 'b' was 3, and is now 4.\n"
        "To fix it:\n"
        "  1. Run with what the recorded run had: the same data, seed, batch size and code.\n"
        "  2. Record it again: record(2, path='/cassettes/run', on_existing='overwrite').\n"
        "  3. Replay the recording all the same: replay(..., on_mismatch='warn')."
    )


def test_another_number_of_rows_is_told_first():
    error = mismatch(HERE, Key(2), [{"a": 1}], [{"a": 2}, {"a": 3}])
    assert (error.row, error.field, error.recorded, error.live) == (None, None, 1, 2)
    assert "it had 1 row, and has 2 now" in str(error)


@pytest.mark.parametrize(
    ("recorded", "live", "told"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, "field 'b' was absent, and is now 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "field 'b' was 2, and is now absent"),
    ],
)
def test_a_field_that_came_or_went_is_told(recorded, live, told):
    assert told in str(mismatch(HERE, Key(2), [recorded], [live]))


def test_short_values_are_shown_whole_and_long_ones_where_they_differ():
    short = mismatch(HERE, Key(2), [{"a": {"b": 1, "c": 2}}], [{"a": {"b": 1, "c": 3}}])
    assert "field 'a' was {'b': 1, 'c': 2}, and is now {'b': 1, 'c': 3}." in str(short)
    recorded, live = ({"a": {"b": "x" * 100, "c": value}} for value in (2, 3))
    assert "field 'a'['c'] was 2, and is now 3." in str(mismatch(HERE, Key(2), [recorded], [live]))


def test_values_that_look_the_same_are_told_apart():
    recorded, live = ({"a": torch.ones(2, dtype=dtype)} for dtype in (torch.int32, torch.int64))
    told = str(mismatch(HERE, Key(2), [recorded], [live]))
    assert "field 'a' was tensor([1, 1], dtype=torch.int32), and is now tensor([1, 1])." in told
    recorded, live = ({"a": torch.tensor([value])} for value in (0.1, 0.100001))
    told = str(mismatch(HERE, Key(2), [recorded], [live]))
    assert "field 'a' differs at [0]: was 0.10000000149011612, and is now 0.1000009" in told


@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: {"a": [value]}])
def test_jagged_tensors_are_told_by_their_items(wrapped):
    """Their reprs show made-up names of lengths, which differ, and no items."""
    first, second = (
        torch.nested.nested_tensor([torch.ones(2), row], layout=torch.jagged)
        for row in (torch.ones(1), torch.zeros(1))
    )
    error = mismatch(HERE, Key(1), [{"x": wrapped(first)}], [{"x": wrapped(second)}])
    assert "differs at [1, 0]: was 1.0, and is now 0.0, in f32[2,*]" in str(error)


def test_a_long_prompt_is_shown_where_it_differs():
    prompts = ["x" * 5000 + ending for ending in ("cats", "dogs")]
    error = mismatch(HERE, Key(2), *([{"prompt": prompt}] for prompt in prompts))
    assert "cats" in str(error)
    assert "dogs" in str(error)
    assert len(error.what) < 400
    assert error.recorded == prompts[0]
