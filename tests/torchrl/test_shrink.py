"""Cassettes of torchrl's collector, shrunk: they replay in the real collector."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import TorchrlCollector
from rollout_cassettes.session.matching import fingerprint
from tests.cassette.sameness import assert_same

IN_ORDER = {"shuffle": False, "updates": False}
"""The data set as it is; what is collected does not depend on training."""

HALF = {"slots": 2, "dialog_turns_per_batch": 4, "total_dialog_turns": 12}
"""What asks for two of the four slots, with as many turns of each."""

DROPPED = [0]
"""torchrl 0.14.1's collector resets its environment when it is made: a draw for each slot.
With ``reset_at_each_iter=True`` it also drops what it has drawn at the end of each batch.
"""


@pytest.fixture
def large(tmp_path):
    return tmp_path / "large"


@pytest.fixture
def small(tmp_path):
    return tmp_path / "small"


def questions(path):
    """Return the questions of each batch of a cassette, in the order in which they are drawn."""
    batches = [each.trajectories for each in rc.open_cassette(path).interactions()]
    answers = [[int(turn.metadata["answer"]) for turn in batch] for batch in batches]
    return [list(dict.fromkeys((answer - 1) // 2 for answer in batch)) for batch in answers]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="stacked"),
        pytest.param({"flatten_data": True}, id="flattened"),
        pytest.param({"reset_at_each_iter": True}, id="reset"),
        pytest.param({"turns": 2}, id="dialogs of two turns"),
    ],
)
def test_it_replays_what_is_asked_for_again(train_torchrl, large, small, options):
    """Cache mode: half of the slots, with the prompts that they drew, in their order."""
    live = train_torchrl(rc.record(path=large), **IN_ORDER, **options)
    shrunk = rc.shrink(large, small, rows=5)
    assert (shrunk.steps, shrunk.rows, shrunk.rows_before) == ([0, 1, 2], 3 * 4, 3 * 8)
    for interaction in rc.open_cassette(small).interactions():
        marks = fingerprint(TorchrlCollector().rows(interaction.request))
        assert interaction.manifest.fingerprint == marks
    between = DROPPED if "reset_at_each_iter" in options else []
    asked = DROPPED + [n for batch in questions(small) for n in (*batch, *between)]
    again = train_torchrl(
        rc.replay(path=small, on_unplayed="error"),
        **IN_ORDER | HALF | options | {"questions": asked},
    )
    assert again.generations == 0
    for old, new in zip(live.batches, again.batches, strict=True):
        assert_same(new.reshape(2, 2), old.reshape(4, 2)[:2])


def test_other_prompts_than_the_kept_ones_are_a_mismatch(train_torchrl, large, small):
    train_torchrl(rc.record(path=large), **IN_ORDER)
    rc.shrink(large, small, rows=4)
    with pytest.raises(rc.RequestMismatchError):
        train_torchrl(rc.replay(path=small), **IN_ORDER)


def test_it_is_repeated_for_any_number_of_environments(train_torchrl, large, small):
    """Repeat mode: the kept slots are gone through again."""
    live = train_torchrl(rc.record(path=large), updates=False)
    assert rc.shrink(large, small, rows=4, steps=[1]).steps == [1]
    again = train_torchrl(rc.replay(path=small, mode="repeat"))
    assert again.session.played == [0, 1, 2]
    assert again.generations == 0
    for slot in range(4):
        for turn in range(2):
            assert_same(again.batches[2][slot, turn], live.batches[1][slot % 2, turn])


def test_slots_that_share_a_prompt_are_kept_together(train_torchrl, large, small):
    """With four dialogs of each prompt, every slot of a batch has the same one."""
    train_torchrl(rc.record(path=large), **IN_ORDER, repeats=4)
    shrunk = rc.shrink(large, small, rows=1)
    assert shrunk.rows == shrunk.rows_before


def test_entries_of_turns_are_no_fields(train_torchrl, large, small):
    """Which of them a replay can do without is not known."""
    train_torchrl(rc.record(path=large), updates=False, total_dialog_turns=8)
    with pytest.raises(rc.CassetteError, match="no field 'tokens'") as caught:
        rc.shrink(large, small, fields=["tokens"])
    assert list(caught.value.fixes) == ["Its responses have no named fields."]


def test_completed_trajectories_are_cut_by_steps(train_torchrl, large, small):
    """Not by rows, which an error says; some of the steps replay."""
    dialogs = {"turns": 2, "yield_completed_trajectories": True, "updates": False}
    live = train_torchrl(rc.record(path=large), **dialogs)
    with pytest.raises(rc.CassetteError, match="which of them took which slot"):
        rc.shrink(large, small, rows=1)
    shrunk = rc.shrink(large, small, steps=[0])
    assert (shrunk.steps, shrunk.rows) == ([0], None)
    again = train_torchrl(rc.replay(path=small, on_miss="generate"), **dialogs)
    assert again.session.played == [0]
    assert_same(again.batches, live.batches)
