"""Trajectories from columns and from values of which nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from rollout_cassettes.trajectories import Statistics, Trajectory, from_columns, read


def test_a_column_is_told_by_its_name_and_what_is_in_it():
    """`responses` may be tokens or text, `rewards` one number for each token or for all."""
    ids = [np.array([1, 2, 3]), np.array([4])]
    (tokens, _) = from_columns({"responses": ids, "rewards": [np.array([0.0, 0.5, 1.0]), ids[1]]})
    assert tokens.response is None
    assert tokens.response_ids.tolist() == [1, 2, 3]
    assert tokens.score == 1.5
    (text,) = from_columns({"responses": ["two"], "rewards": [0.25], "other": [{"a": 1}]})
    assert (text.response, text.response_ids, text.rewards, text.score) == ("two", None, None, 0.25)
    assert text.metadata == {"other": {"a": 1}}


def test_prompts_are_numbered_in_the_order_of_the_request():
    """And their responses as they come; those that the request lacks go on from there."""
    rows = from_columns({"uid": ["b", "a", "x", "b"], "response": list("1234")}, ["a", "b"])
    assert [(row.group, row.session) for row in rows] == [(1, 0), (0, 0), (2, 0), (1, 1)]
    assert rows[3].key == "b_1_0"


def test_no_columns_are_no_rows():
    assert from_columns({}) == []


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="unpack"):
        from_columns({"response": ["a"], "score": [1.0, 2.0]})


def test_padding_after_the_mask_is_left_out():
    """Of batches in one array; rows that have a length of their own are whole."""
    batch = {
        "completion_ids": np.array([[1, 2, 0], [3, 4, 5]]),
        "completion_mask": np.array([[1, 0, 0], [0, 1, 1]]),
        "log_probs": np.zeros((2, 3), np.float32),
    }
    rows = read(None, batch)
    assert [row.response_ids.tolist() for row in rows] == [[1], [3, 4, 5]]
    assert [len(row.log_probs) for row in rows] == [1, 3]
    jagged = {name: list(column) for name, column in batch.items()}
    assert [row.response_length for row in read(None, jagged)] == [3, 3]


def test_a_mask_may_be_of_floats():
    """As who multiplies a loss by it keeps it; a tool's tokens must not count as the model's."""
    batch = {
        "response_ids": [[1, 2], [3]],
        "loss_mask": [[1.0, 0.0], [1.0]],
        "mask": [[0.5], [2.0]],
    }
    first, second = read(None, batch)
    assert (first.mask.tolist(), second.mask.tolist()) == ([1, 0], [1])
    assert first.mask.dtype == np.int64
    del batch["loss_mask"]
    assert [row.mask for row in read(None, batch)] == [None, None]


def test_a_list_has_rows_and_the_request_their_prompts():
    rows = read(["1 + 1", "2 + 2"], ["two", "four"])
    assert [(row.prompt, row.response) for row in rows] == [("1 + 1", "two"), ("2 + 2", "four")]
    rows = read([{"prompt": "p", "index": 3}], [{"text": "t", "reward": 1}])
    assert (rows[0].prompt, rows[0].response, rows[0].score) == ("p", "t", 1.0)
    assert rows[0].metadata == {"index": 3}


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "text",
        [],
        {},
        [1, 2],
        {"a": [1, 2]},
        {"x": np.zeros((2, 3))},
        np.zeros((2, 3)),
        [[1], [2]],
        {"responses": np.zeros(())},
    ],
    ids=repr,
)
def test_what_has_no_responses_has_no_rows(value):
    assert read(value, value) == []


def test_columns_of_odd_lengths_and_kinds_are_left_out():
    """A dict holds more than columns: options, and totals."""
    rows = read(None, {"response": ["a", "b"], "score": [1, 2], "temperature": 0.7, "n": [1]})
    assert [(row.response, row.score) for row in rows] == [("a", 1.0), ("b", 2.0)]


def test_chat_messages_are_prompts():
    """Their parts may be images."""
    parts = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    (row,) = from_columns({"raw_prompt": [messages], "response": ["A cat."]})
    assert row.prompt_text == "system: Be brief.\n\nuser: <image>What is this?"
    assert row.question == "<image>What is this?"


def test_tokens_are_decoded_where_a_tokenizer_is_given():
    row = Trajectory(prompt_ids=np.array([1, 2]), response_ids=np.array([3, 4]))
    row = row.decoded(lambda ids: "".join(chr(96 + token) for token in ids))
    assert (row.prompt, row.response, row.tokens) == ("ab", "cd", ["c", "d"])


def test_figures_of_a_batch():
    rows = [Trajectory(uid=uid, score=score) for uid, score in [("a", 1), ("a", 2), ("b", None)]]
    figures = Statistics.of(rows)
    assert (figures.rows, figures.groups, figures.scored) == (3, 2, 2)
    assert (figures.reward, figures.reward_std, figures.reward_max) == (1.5, 0.5, 2)
    assert (figures.response_tokens, figures.response_length) == (None, None)
    assert Statistics.of([]) == Statistics()
    assert Statistics.of([Trajectory(group=number // 2) for number in range(4)]).groups == 2


@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ([np.inf, -np.inf], np.nan),
        ([np.inf, 1.0], np.inf),
        ([np.nan, 1.0], np.nan),
        ([1.7e308, 1.7e308], np.inf),
        ([1e200, -1e200], 0.0),
    ],
)
def test_scores_that_have_no_finite_mean_have_figures(scores, mean):
    figures = Statistics.of([Trajectory(score=score) for score in scores])
    np.testing.assert_equal(figures.reward, mean)
    assert not figures.reward_std < np.inf


def test_rewards_that_have_no_sum_are_read_in_silence():
    (row,) = from_columns({"responses": [np.arange(2)], "rewards": [np.array([np.inf, -np.inf])]})
    assert np.isnan(row.score)


def test_a_number_that_no_float_holds_is_no_score():
    (row,) = read(None, [{"response": "a", "score": 10**400}])
    assert (row.score, row.metadata) == (None, {"score": 10**400})
