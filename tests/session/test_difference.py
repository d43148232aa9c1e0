"""Where two values first differ, as people are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rollout_cassettes.session.difference import describe, tensor_type

PROMPT = "You are a helpful assistant. " * 20


@pytest.mark.parametrize(
    ("recorded", "live", "told"),
    [
        ("2+2", "2+3", "was '2+2', and is now '2+3'"),
        (1, 2, "was 1, and is now 2"),
        (1, True, "was 1, and is now True"),
        (0.0, -0.0, "was 0.0, and is now -0.0"),
        (None, "x", "was None, and is now 'x'"),
        ([1, 2], [1, 3], "[1] was 2, and is now 3"),
        ([1], [1, 2], "[1] was absent, and is now 2"),
        ([1, 2], [1], "[1] was 2, and is now absent"),
        ((1, 2), (1, 3), "[1] was 2, and is now 3"),
        ((1,), [1], "was a tuple, and is now [1]"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "['a']['b'] was 1, and is now 2"),
        ({"data": 1}, {"data": 2}, "['data'] was 1, and is now 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "['b'] was absent, and is now 2"),
        (
            [{"role": "user", "content": "x"}],
            [{"role": "user", "content": "y"}],
            "[0]['content'] was 'x', and is now 'y'",
        ),
        (torch.zeros(2), torch.zeros(3), "was f32[2], and is now f32[3]"),
        (torch.zeros(2), torch.zeros(2).half(), "was f32[2], and is now f16[2]"),
        (
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor([[1, 2], [5, 4]]),
            "differs at [1, 0]: was 3, and is now 5, in i64[2,2]",
        ),
        (torch.tensor(1), torch.tensor(2), "differs at []: was 1, and is now 2, in i64[]"),
        (
            torch.zeros(2),
            np.zeros(2, np.float32),
            "was a torch.tensor f32[2], and is now a numpy.array f32[2]",
        ),
        (np.array([1, 2]), np.array([1, 3]), "differs at [1]: was 2, and is now 3, in i64[2]"),
        (
            TensorDict({"ids": torch.tensor([1])}, [1]),
            TensorDict({"ids": torch.tensor([2])}, [1]),
            "['ids'] differs at [0]: was 1, and is now 2, in i64[1]",
        ),
    ],
)
def test_the_first_difference_is_told(recorded, live, told):
    assert describe(recorded, live) == told


def test_long_texts_are_shown_around_the_first_character_that_differs():
    told = describe(PROMPT + "Answer briefly.", PROMPT + "Answer at length.")
    place = len(PROMPT) + len("Answer ")
    assert told.startswith(f"differs from character {place} on: was '…")
    assert "Answer briefly.', and is now '…" in told
    assert len(told) < 300


def test_a_text_that_goes_on_differs_from_its_end():
    assert describe(PROMPT, PROMPT + "x").startswith(f"differs from character {len(PROMPT)} on")


def test_nan_is_equal_to_itself_and_to_no_other_nan():
    bits = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
    first, second = bits[:1], bits[1:]
    assert "differs at [0]" in describe(first, second)
    assert describe([float("nan"), 1], [float("nan"), 2]) == "[1] was 1, and is now 2"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.float32, "f32"),
        (torch.bfloat16, "bf16"),
        (torch.int64, "i64"),
        (torch.uint8, "u8"),
        (torch.bool, "bool"),
        (torch.complex64, "complex64"),
        (torch.float8_e4m3fn, "float8_e4m3fn"),
    ],
)
def test_dtypes_and_shapes_are_written_short(dtype, name):
    assert tensor_type(torch.empty(2, 3, dtype=dtype)) == f"{name}[2,3]"
