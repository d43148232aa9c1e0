"""Recorded batches of torchrl's, cut by slots, while they are taken apart: torchrl is not needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tensordict import NonTensorData, TensorDict, lazy_stack

from rollout_cassettes.adapters.excerpt import Skeletons
from rollout_cassettes.adapters.torchrl import slots
from rollout_cassettes.adapters.torchrl.reading import rows as rows_of_batch
from rollout_cassettes.cassette.tensors import _raw
from rollout_cassettes.cassette.tree import split
from rollout_cassettes.cassette.tree.picking import Picker

NOWHERE = Path("step-000000.msgpack")

COLUMNS = ["query", ("more", "level")]
"""One column that is there, and one that is nested."""


def turn(query, level=0):
    row = {"query": NonTensorData(query), "done": torch.tensor([True])}
    return TensorDict(row | {"more": {"level": torch.tensor([level])}})


def recorded(turns, *, flat=False, columns=COLUMNS, size=None, waiting=True):
    """Take a batch of turns apart: of each turn a list with a row for each slot."""
    output = lazy_stack([lazy_stack(rows) for rows in turns], -1)
    size = [len(turns[0])] if size is None else size
    request = {
        "prompts": [{"query": row["query"]} for row in turns[0]] if waiting else [],
        "shape": {"slots": tuple(size), "turns": len(turns)},
        "columns": columns,
    }
    parts = split({"request": request, "response": {"output": output.view(-1) if flat else output}})
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    marks = [str(n) for n in range(len(request["prompts"]))]
    return Skeletons(parts.skeleton["request"], parts.skeleton["response"], marks, picker)


def rows(*queries):
    return [turn(query) for query in queries]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("turns", "shared"),
    [
        ([rows(*"aabb")], [[0, 1], [2, 3]]),
        ([rows(*"aabb"), rows(*"ccdd")], [[0, 1], [2, 3]]),
        ([rows(*"abab")], [[0, 2], [1, 3]]),
        ([rows(*"aabb"), rows(*"cdde")], [[0, 1, 2, 3]]),
        ([rows(*"abc"), rows(*"cde")], [[0, 2], [1]]),
        ([rows(*"abc"), rows(*"bca")], [[0, 1, 2]]),
        ([[turn("a"), turn("a", 1), turn("a")]], [[0, 2], [1]]),
    ],
)
def test_slots_that_share_a_prompt_in_any_turn_are_a_group(flat, turns, shared):
    """By all of the data set's columns; also where two slots share prompts with a third only."""
    groups = slots.groups(recorded(turns, flat=flat))
    count = len(turns)
    assert [sorted({row // count for row in group.rows}) for group in groups] == shared
    assert [len(group.rows) for group in groups] == [count * len(each) for each in shared]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("waiting", [False, True])
def test_the_kept_slots_are_those_of_a_smaller_environment(flat, waiting):
    """All of their turns, and the prompts that waited for them."""
    whole = recorded([rows(*"abac"), rows(*"degf")], flat=flat, waiting=waiting)
    first, *_ = slots.groups(whole)
    cut = slots.excerpt(whole, [first])
    request, response = map(whole.picker.plain, (cut.request, cut.response))
    assert request["shape"] == {"slots": (2,), "turns": 2}
    assert [row["query"] for row in request["prompts"]] == ["a", "a"] * waiting
    assert cut.asked == [0, 2] * waiting
    queries = [row["query"] for row in rows_of_batch(response["output"])]
    assert queries == (["a", "d", "a", "g"] if flat else ["a", "a", "d", "g"])


def test_what_can_not_be_told_apart_is_refused():
    """By a message that says why."""
    batch = [rows(*"aabb")]
    with pytest.raises(ValueError, match="no columns of a data set"):
        slots.groups(recorded(batch, columns=[]))
    with pytest.raises(ValueError, match=r"the batch size \(2, 2\)"):
        slots.groups(recorded(batch, size=(2, 2)))
    with pytest.raises(ValueError, match="no stack of 1 turns of 3 slots"):
        slots.groups(recorded(batch, size=(3,)))
    dialogs = recorded(batch)
    dialogs.request.pop("shape")
    with pytest.raises(ValueError, match="dialogs that were completed"):
        slots.groups(dialogs)
