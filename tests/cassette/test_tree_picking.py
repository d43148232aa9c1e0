"""Rows picked from skeletons are the rows that the values themselves give."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict

from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.cassette.safetensors_file import RawTensor
from rollout_cassettes.cassette.tensors import _raw
from rollout_cassettes.cassette.tree import join, split
from rollout_cassettes.cassette.tree.picking import Picker

COUNT = 5
ROWS = st.lists(st.integers(0, COUNT - 1), max_size=7)
NOWHERE = Path("step-000001.msgpack")


def dense(*shape):
    return torch.arange(COUNT * max(1, int(np.prod(shape))), dtype=torch.float32).view(
        COUNT, *shape
    )


def jagged(dtype=torch.int64, *shape):
    rows = [
        torch.full((size, *shape), number).to(dtype) for number, size in enumerate((3, 0, 2, 4, 1))
    ]
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def lazy(dim):
    items = COUNT if dim == 0 else 2
    size = [3] if dim == 0 else [COUNT]
    return LazyStackedTensorDict(
        *[TensorDict({"a": torch.full(size, n)}, batch_size=size) for n in range(items)],
        stack_dim=dim,
    )


def strided():
    return torch.nested.nested_tensor([torch.full((n, 2), float(n)) for n in range(COUNT)])


def objects():
    array = np.empty((COUNT, 2), dtype=object)
    for row in range(COUNT):
        array[row] = [{"n": row}, [row] * row]
    return array


COLUMNS = {
    "a tensor": dense(),
    "a matrix": dense(3),
    "bfloat16": dense(2, 2).to(torch.bfloat16),
    "float8": dense(2).to(torch.float8_e4m3fnuz),
    "complex": dense(2).to(torch.complex64),
    "nothing wide": dense(3)[:, :0],
    "jagged": jagged(),
    "jagged with more": jagged(torch.float32, 2),
    "jagged float8": jagged(torch.float8_e4m3fnuz),
    "ragged last": jagged(torch.float32, 2).transpose(1, 2),
    "strided": None,  # torch warns when the first one is made
    "numbers": np.arange(COUNT * 2).reshape(COUNT, 2),
    "text": np.array(["a", "bb", "", "ccc", "d"]),
    "objects": objects(),
    "a list": [{"n": n} for n in range(COUNT)],
    "a tuple": tuple(range(COUNT)),
    "a deque": deque(range(COUNT), maxlen=9),
    "a batch": TensorDict({"a": dense(2), "b": {"c": dense()}}, batch_size=[COUNT]),
    "with names": TensorDict({"a": dense(2)}, batch_size=[COUNT, 2], names=["row", None]),
    "a stack": lazy(0),
    "a stack beside": lazy(1),
    "words": NonTensorStack(*[NonTensorData(f"w{n}") for n in range(COUNT)]),
}


def picked(value, rows):
    parts = split(value, "response", strict=True)
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    assert picker.length(parts.skeleton) == COUNT
    skeleton, tensors = picker.settled(picker.rows(parts.skeleton, rows))
    assert all(isinstance(raw, RawTensor) for raw in tensors.values())
    return join(skeleton, tensors, source=NOWHERE)


def row_of(value, row):
    if isinstance(value, torch.Tensor) and value.is_nested:
        return value.unbind()[row]
    return value[row]


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=12)
@given(ROWS)
def test_each_row_is_the_row_it_was(name, rows):
    """In the container that it was in."""
    value = strided() if name == "strided" else COLUMNS[name]
    if name == "strided" and not rows:
        return  # torch makes no nested tensor of no rows
    found = picked(value, rows)
    assert type(found) is type(value)
    assert (found.size(0) if name == "strided" else len(found)) == len(rows)
    for number, row in enumerate(rows):
        assert digest(row_of(found, number)) == digest(row_of(value, row))


def test_lengths_of_a_jagged_tensor_are_kept_and_its_holes_are_not():
    values = torch.arange(10)
    value = torch.nested.nested_tensor_from_jagged(
        values, offsets=torch.tensor([0, 3, 7, 10]), lengths=torch.tensor([2, 1, 3])
    )
    parts = split(value, strict=True)
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    skeleton, tensors = picker.settled(picker.rows(parts.skeleton, [2, 0]))
    found = join(skeleton, tensors, source=NOWHERE)
    assert [row.tolist() for row in found.unbind()] == [[7, 8, 9], [0, 1]]
    assert found.lengths().tolist() == [3, 2]


def test_what_was_stored_once_is_stored_once():
    """Jagged tensors that share their offsets share them still: else torch can't add them up."""
    one = jagged()
    two = torch.nested.nested_tensor_from_jagged(one.values() * 2, offsets=one.offsets())
    parts = split({"one": one, "two": two}, strict=True)
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    cut = {name: picker.rows(node, [0, 3]) for name, node in parts.skeleton.items()}
    skeleton, tensors = picker.settled(cut)
    assert len(tensors) == 3
    found = join(skeleton, tensors, source=NOWHERE)
    assert (found["one"] + found["two"]).values().tolist() == [0] * 3 + [9] * 4


def test_a_tensor_that_is_needed_whole_and_in_part_has_two_names():
    value = dense(2)
    parts = split({"whole": value, "part": value}, strict=True)
    assert len(parts.tensors) == 1
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    cut = {"whole": parts.skeleton["whole"], "part": picker.rows(parts.skeleton["part"], [1])}
    skeleton, tensors = picker.settled(cut)
    assert set(tensors) == {"/whole", "/whole#2"}
    found = join(skeleton, tensors, source=NOWHERE)
    assert found["whole"].equal(value)
    assert found["part"].equal(value[1:2])


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}, torch.tensor(1.0), {1: 2}])
def test_what_has_no_rows_says_so(value):
    parts = split(value, strict=True)
    picker = Picker({name: _raw(tensor) for name, tensor in parts.tensors.items()}, NOWHERE)
    assert picker.length(parts.skeleton) is None
    with pytest.raises(ValueError, match="it has no rows"):
        picker.rows(parts.skeleton, [0])
