"""Blocks hold what was recorded, in a form that a browser reads."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.report.blocks import numbers, packed, text_block
from rollout_cassettes.trajectories import Trajectory

FIRST = 0x23  # as in assets/blocks.js


def unpacked(block):
    return json.loads(zlib.decompress(base64.b64decode(block)))


@given(st.lists(st.integers(0, 50_001)))
def test_numbers_come_back_from_their_characters(values):
    assert [ord(character) - FIRST for character in unpacked(packed(numbers(values)))] == values


def test_prompts_are_kept_once():
    rows = [Trajectory(prompt=prompt, response="x") for prompt in ("a", "b", "a")]
    found = unpacked(packed(text_block(rows)))
    assert found["prompts"] == ["a", "b"]
    assert [row["prompt"] for row in found["rows"]] == [0, 1, 0]


def test_log_probs_are_kept_to_a_hundredth():
    """What is no number is told as unknown; what rounding made positive is 0."""
    row = Trajectory(log_probs=np.array([-0.126, 1e-7, np.nan, -np.inf, -1e9], np.float32))
    text = text_block([row])["rows"][0]["logProbs"]
    assert [ord(character) - FIRST for character in text] == [13, 0, 50_001, 50_001, 50_000]


def test_masks_and_rewards_are_kept_where_they_are():
    row = Trajectory(mask=np.array([0, 1, 0, 0, 1]), rewards=np.array([0.0, 0, 0.5, 0, -1]))
    found = text_block([row])["rows"][0]
    assert found["masked"] == [[0, 1], [2, 4]]
    assert found["rewards"] == [[2, 0.5], [4, -1.0]]


def test_tokens_are_kept_as_lengths_of_the_text():
    """And their text apart, where a tokenizer gives another one token by token."""
    same = Trajectory(response="ab c", tokens=["ab", " c"], response_ids=np.array([1, 2]))
    parts = text_block([same])["rows"][0]
    assert parts["tokens"] == "%%"
    assert "pieces" not in parts
    assert "ids" not in parts
    split = Trajectory(response="\N{FROG FACE}", tokens=["\ufffd", "\ufffd"])
    assert text_block([split])["rows"][0]["pieces"] == "\ufffd\ufffd"


def test_what_is_large_is_named_and_what_json_lacks_is_text():
    fields = {"pixels": np.zeros((30, 30)), "few": np.arange(3), "raw": b"abc", "nan": float("nan")}
    row = Trajectory(response="\x1b[2J", metadata={**fields, "long": "x" * 30_000})
    found = unpacked(packed(text_block([row])))["rows"][0]
    assert found["fields"]["pixels"] == "f64[30,30]"
    assert found["fields"]["few"] == [0, 1, 2]
    assert found["fields"]["raw"] == "3 bytes"
    assert found["fields"]["nan"] is None
    assert len(found["fields"]["long"]) == 20_001
    assert found["text"] == "\N{SYMBOL FOR ESCAPE}[2J"
