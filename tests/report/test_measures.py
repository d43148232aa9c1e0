"""Figures of trajectories: what counts as passed, as truncated, as lag; and what isn't known."""

from __future__ import annotations

import numpy as np
import pytest

from rollout_cassettes.report import Criteria
from rollout_cassettes.report.measures import RowMeasures, Spread, StepMeasures
from rollout_cassettes.trajectories import Trajectory

STEP = "trainer step"


def row(score=None, length=4, **parts):
    return Trajectory(step=5, score=score, response_ids=np.arange(length), **parts)


def measured(rows, criteria=None, step_kind=STEP):
    criteria = criteria or Criteria()
    each = [RowMeasures.of(row, step_kind, criteria) for row in rows]
    return StepMeasures.of(rows, each, criteria)


def test_a_spread_tells_how_values_lie():
    """What is unknown, or no number, is left out."""
    spread = Spread.of([None, float("nan"), *range(11)])
    assert spread == Spread(5.0, 3.16228, 0.0, 1.0, 2.5, 5.0, 7.5, 9.0, 10.0)
    assert Spread.of([None]) is None


def test_the_largest_numbers_are_measured_without_a_warning():
    """Their sum is larger than any float."""
    assert Spread.of([1e308, 1.5e308]).high == 1.5e308


@pytest.mark.parametrize(
    ("scores", "rate"), [([0, 1, 1, 0], 0.5), ([-1, 1], 0.5), ([0.5, 1], None), ([0, 1, 2], None)]
)
def test_rewards_tell_who_passed_where_they_are_right_or_wrong(scores, rate):
    found = measured([row(float(score)) for score in scores])
    assert found.pass_rate == rate
    assert found.by_reward


def test_the_reward_function_knows_best():
    """verl's ``acc``, whatever the reward is; and a threshold, where one is given."""
    told = {"extra_fields": {"reward_extra_info": {"acc": 1.0}}}
    rows = [row(0.2, metadata=told), row(0.9)]
    assert measured(rows).pass_rate == 1.0
    assert not measured(rows).by_reward
    assert measured(rows, Criteria(pass_reward=0.5)).pass_rate == 0.5


def test_a_response_is_cut_by_what_is_recorded_or_by_a_length():
    cut, ended = row(metadata={"finish_reason": "length"}), row(metadata={"finish_reason": "stop"})
    assert measured([cut, ended]).truncated == 0.5
    assert measured([row(metadata={"extra_fields": {"truncated": True}})]).truncated == 1
    assert measured([row()]).truncated is None
    assert (
        measured([row(length=4), row(length=3)], Criteria(max_response_length=4)).truncated == 0.5
    )


def test_log_probs_are_of_what_the_model_wrote():
    """The mask leaves the second out; the third is less probable than a tenth."""
    log_probs = np.array([-0.5, -9.0, -2.5, -np.inf])
    found = measured([row(log_probs=log_probs, mask=np.array([1, 0, 1, 1]))])
    assert found.log_prob.mean == -1.5
    assert found.entropy == 1.5
    assert found.unlikely == 0.5


def test_entropy_is_of_all_tokens_and_log_prob_of_responses():
    rows = [row(log_probs=np.array([-1.0])), row(log_probs=np.array([-4.0, -4.0, -4.0]))]
    assert measured(rows).log_prob.mean == -2.5
    assert measured(rows).entropy == 3.25


def test_lag_is_counted_from_the_version_that_a_step_trains():
    """Step 5 trains version 4; only steps of a trainer count versions."""
    rows = [
        row(metadata={"extra_fields": {"max_global_steps": 2}}),
        row(metadata={"max_global_steps": 4}),
    ]
    assert measured(rows).lag.mean == 1.0
    assert measured(rows, step_kind="call").lag is None
    assert measured([row(metadata={"max_global_steps": 5})]).lag is None


def test_groups_of_one_reward_are_counted():
    rows = [
        row(float(score), group=group) for group, score in ((0, 1), (0, 1), (1, 0), (1, 1), (2, 1))
    ]
    found = measured(rows)
    assert found.groups == 3
    assert found.flat_groups == 0.5


def test_what_holds_nothing_has_no_figures():
    found = measured([Trajectory(response="text")])
    assert found.rows == 1
    assert {
        getattr(found, name) for name in ("reward", "length", "log_prob", "entropy", "lag")
    } == {None}


def test_a_reward_that_is_no_number_has_no_place_in_a_report():
    rows = [row(score, group=0) for score in (1.0, float("nan"), float("inf"))]
    assert measured(rows).reward.mean == 1.0
    assert [RowMeasures.of(each, STEP, Criteria()).score for each in rows] == [1.0, None, None]
