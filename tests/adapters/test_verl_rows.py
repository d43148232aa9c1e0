"""Which recorded rows a replay hands back, and under which keys; needs no framework."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.adapters.verl.rows import (
    Rollout,
    Row,
    as_recorded,
    fitted,
    renamed,
    restored_tag,
)

UIDS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


@st.composite
def recordings(draw):
    """Keys of some groups: any of three rollouts each, one or two outputs, in any order."""
    keys = [
        f"{uid}_{number}_{index}"
        for uid in draw(UIDS)
        for number in draw(st.lists(st.integers(0, 2), min_size=1, unique=True))
        for index in range(draw(st.integers(1, 2)))
    ]
    return draw(st.permutations(keys))


def keys_of(rows, recorded):
    return [f"{row.new}{recorded[row.source][len(str(row.old)) :]}" for row in rows]


@given(recordings())
def test_recorded_rows_come_in_their_order_under_new_uids(keys):
    names = {uid: f"new-{uid}" for uid in "abcde"}  # "f" is not known, and gets a uid of its own
    rows = as_recorded(keys, names)
    assert [row.source for row in rows] == list(range(len(keys)))
    known = {row.new.uid for row in rows if row.old.uid != "f"}
    unknown = {row.new.uid for row in rows if row.old.uid == "f"}
    assert known <= set(names.values())
    assert len(unknown) <= 1
    assert not unknown & {"f", *names.values()}
    back = {row.new.uid: row.old.uid for row in rows}
    assert [
        f"{back[Rollout.of(key).uid]}_{key.split('_', 1)[1]}" for key in keys_of(rows, keys)
    ] == keys


@given(recordings(), st.integers(0, 12))
def test_fitted_rows_are_whole_groups_for_each_prompt(keys, count):
    """Every prompt gets all of a group, filled up to the largest; no key comes twice."""
    uids = [f"new{number}" for number in range(count)]
    rows = fitted(keys, uids)
    made = keys_of(rows, keys)
    assert len(set(made)) == len(made)
    assert {row.new.uid for row in rows} == set(uids)
    full = max(Counter(uid for uid, _ in {Rollout.of(key) for key in keys}).values())
    rollouts = defaultdict(set)
    for row in rows:
        rollouts[row.new.uid].add(row.new.number)
        assert Rollout.of(keys[row.source]) == row.old
    assert all(len(numbers) == full for numbers in rollouts.values())


@given(recordings())
def test_fitted_rows_of_as_many_prompts_keep_their_order(keys):
    """But for those that fill a group up, which come last."""
    groups = list(dict.fromkeys(Rollout.of(key).uid for key in keys))
    rows = fitted(keys, [f"new-{uid}" for uid in groups])
    assert [key.removeprefix("new-") for key in keys_of(rows, keys)][: len(keys)] == keys


def test_without_rows_there_is_nothing_to_fit():
    assert fitted([], ["a"]) == []


def test_the_largest_group_is_gone_through_lap_by_lap():
    """Two groups for three prompts: the first one again, under a uid of its own."""
    rows = fitted(["a_0_0", "b_0_0", "a_1_0", "b_1_0"], ["x", "y", "z"])
    assert [str(row.new) for row in rows] == ["x_0", "y_0", "x_1", "y_1", "z_0", "z_1"]


ROW = Row(0, Rollout("old", "1"), Rollout("new", "4"))


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("old", "new"),
        ("old_1", "new_4"),
        ("old_1_0", "new_4_0"),
        ("old_10_0", "new_10_0"),
        ("old_2", "new_2"),
        ("older", "older"),
        (["old", {"id": ("old_1", 3)}], ["new", {"id": ("new_4", 3)}]),
        (None, None),
    ],
)
def test_uids_are_replaced_wherever_they_stand(value, after):
    """Alone, or at the start of a key."""
    assert renamed(value, ROW) == after


def test_what_holds_no_uid_is_the_object_that_it_was():
    value = {"a": [1, "x"], "b": ("y",)}
    assert renamed(value, ROW) is value


def test_step_counts_in_tags_move_with_the_step():
    tag = {"global_steps": 2, "min_global_steps": None, "max_global_steps": 1, "key": "old_1_0"}
    assert restored_tag(tag, ROW, 3) == tag | {
        "global_steps": 5,
        "max_global_steps": 4,
        "key": "new_4_0",
    }
    assert restored_tag(tag, ROW, None) == tag | {"key": "new_4_0"}
