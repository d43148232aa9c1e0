"""Taking trees apart: paths, and what can't be stored."""

from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.cassette import tree
from rollout_cassettes.cassette.tree.splitter import MAX_DEPTH, escape
from rollout_cassettes.errors import UnstorableValueError
from tests.cassette import samples
from tests.cassette.round_trip import plain, round_trip, stored
from tests.cassette.sameness import assert_same

# ---- paths


def test_tensors_are_stored_under_their_paths():
    value = {"a": torch.zeros(1), "b": [{"c": torch.zeros(1)}, (torch.zeros(1),)]}
    assert list(stored(value)[1]) == ["response/a", "response/b/0/c", "response/b/1/0"]


def test_paths_that_would_be_the_same_are_told_apart():
    one, two = torch.zeros(1), torch.ones(1)
    values = {"a": {"b": one}, "a/b": two, "a~1b": one + 2, "": {"": one + 3}, "/": one + 4}
    assert_same(values, round_trip(values))


@pytest.mark.parametrize(
    "keys", [(1, "1"), ("\ud800", "\\ud800"), ("x", "x#2"), ((1,), 1)], ids=ascii
)
def test_keys_that_would_have_the_same_path_are_told_apart(keys):
    value = dict(zip(keys, torch.arange(2).unbind(), strict=True))
    assert_same(value, round_trip(value))


@given(st.lists(st.text(), min_size=1), st.lists(st.text(), min_size=1))
def test_different_parts_make_different_paths(left, right):
    paths = ["/".join(map(escape, parts)) for parts in (left, right)]
    assert (paths[0] == paths[1]) == (left == right)


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_every_path_can_be_written_as_utf_8(text):
    escape(text).encode()


# ---- what can't be stored


def holes(value):
    """Return the paths of what a tree was stored without, and the tree that comes back."""
    parts = tree.split(value, "response")
    return [omission.path for omission in parts.omissions], round_trip(value, strict=False)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([1, object()], "response/1"),
        ({"a": {"b": object()}}, "response/a/b"),
        ((object(),), "response/0"),
        ({1: object()}, "response/0"),
        ({samples.Opaque(): 1}, "response/0"),
        ({object()}, "response/0"),
        (samples.Point(1, object()), "response/y"),
        (samples.Sample(object()), "response/prompt"),
        (object(), "response"),
        (samples.Mortal(1), "response"),
        (lambda: 0, "response"),
    ],
)
def test_a_value_that_cannot_be_stored_is_named_by_its_path(value, path):
    assert holes(value)[0] == [path]
    with pytest.raises(UnstorableValueError) as caught:
        tree.split(value, "response", strict=True)
    assert caught.value.location == path


def test_what_stands_beside_it_is_kept():
    paths, again = holes({"a": torch.ones(1), "b": object(), "c": [object(), 1]})
    assert paths == ["response/b", "response/c/0"]
    assert (again["a"].item(), again["c"][1]) == (1, 1)
    assert again["b"].type_name == "object"
    assert again["b"].reason == "no codec knows this type"


def test_two_omitted_keys_are_two_keys():
    _, again = holes({samples.Opaque(): 1, samples.Opaque(): 2})
    assert sorted(again.values()) == [1, 2]


def test_a_recording_that_lacks_a_value_is_not_replayed():
    skeleton, data = stored([object()], strict=False)
    with pytest.raises(UnstorableValueError, match="recorded without a value of type object"):
        tree.join(skeleton, data, source="x", strict=True)


def test_omissions_can_be_read_without_libraries():
    assert plain([object()], strict=False)[0].type_name == "object"


class Broken:
    """Fails whatever is asked of it."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        raise self.error


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyError("x"), OSError(), MemoryError(), SystemError()]
)
def test_a_value_that_fails_in_any_way_ends_no_run(fresh_table, error):
    tree.register_codec(Broken, list, Broken)
    paths, again = holes({"a": Broken(error), "b": 2})
    assert paths == ["response/a"]
    assert again["b"] == 2


def test_an_interrupt_is_let_through(fresh_table):
    tree.register_codec(Broken, list, Broken)
    with pytest.raises(KeyboardInterrupt):
        tree.split(Broken(KeyboardInterrupt()))


# ---- depth and cycles


@pytest.mark.parametrize(
    "make", [lambda x: [x], lambda x: {"a": x}, lambda x: (x,), samples.Frozen]
)
def test_a_tree_may_nest_as_deep_as_the_limit_and_no_deeper(make):
    deep = 1
    for _ in range(MAX_DEPTH):
        deep = make(deep)
    assert_same(deep, round_trip(deep))
    paths, _ = holes(make(deep))
    assert len(paths) == 1
    with pytest.raises(UnstorableValueError, match="more than 128 levels deep"):
        round_trip(make(deep))


def test_only_the_level_below_the_limit_is_left_out():
    deep = object
    for level in range(MAX_DEPTH + 1):
        deep = {"deeper": deep, "level": level}
    paths, again = holes(deep)
    assert paths == ["response" + "/deeper" * MAX_DEPTH]
    for _ in range(MAX_DEPTH - 1):
        again = again["deeper"]
    assert again["level"] == 1


def at_depth(frames, call):
    return at_depth(frames - 1, call) if frames else call()


def test_a_tree_that_python_cannot_descend_is_left_out_in_part():
    """A trainer's own stack may be deep."""
    deep = []
    for _ in range(100):
        deep = [deep]
    value = {"kept": 1, "deep": deep}
    used = len(__import__("inspect").stack())
    parts = at_depth(sys.getrecursionlimit() - used - 60, lambda: tree.split(value, "response"))
    assert parts.skeleton["kept"] == 1
    assert len(parts.omissions) == 1
    assert "RecursionError" in parts.omissions[0].reason


def test_a_value_that_contains_itself_is_left_out_there():
    loop = {"kept": 1}
    loop["self"] = loop
    loop["list"] = [loop]
    paths, again = holes(loop)
    assert paths == ["response/self", "response/list/0"]
    assert again["kept"] == 1


def test_a_value_may_stand_in_several_places():
    shared = [torch.ones(1)]
    assert_same([shared, shared, (shared,)], round_trip([shared, shared, (shared,)]))


# ---- portable skeletons, which are compared across machines


def test_a_portable_skeleton_says_nothing_of_places():
    from tensordict import TensorDict

    tensor = torch.ones(2)
    here = [
        TensorDict({"a": tensor, "b": ["x", "y"]}, batch_size=[2], device="cpu").lock_(),
        tensor,
        tensor.clone().requires_grad_(),
    ]
    there = [TensorDict({"a": tensor.clone(), "b": ["x", "y"]}, [2]), torch.ones(2), torch.ones(2)]
    left, right = (tree.split(value, "x", portable=True) for value in (here, there))
    assert left.skeleton == right.skeleton
    assert list(left.tensors) == list(right.tensors)
    assert tree.split(here, "x").skeleton != left.skeleton
