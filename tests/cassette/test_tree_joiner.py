"""Putting trees together from skeletons that may be anything."""

from __future__ import annotations

import copy
import sys
from contextlib import suppress

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, CassetteError, UnstorableValueError
from tests import strategies
from tests.cassette.round_trip import SOURCE, stored

READERS = [tree.join, tree.plain]

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([2**63, 2**64 - 1, -(2**63), 10**9]),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(-2, 3), max_size=3),
    st.sampled_from(["cuda", "meta", "float32", "sparse_coo", "torch.tensor", "os:system"]),
    st.just({}),
    st.just({"$": "tuple", "items": []}),
    st.just({"$": "torch.tensor", "key": "nothing"}),
)


def spots(node, found):
    """Return every place in a skeleton, as container and key."""
    items = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, item in items:
        found.append((node, key))
        spots(item, found)
    return found


@settings(max_examples=200)
@given(strategies.batches, st.data())
def test_an_altered_skeleton_raises_nothing_but_our_errors(batch, data):
    """And crashes nothing: the bytes of rows, shapes and dtypes go down to native code."""
    skeleton, tensors = stored(batch)
    box = [skeleton]
    for _ in range(data.draw(st.integers(1, 2))):
        node, key = data.draw(st.sampled_from(spots(box, [])))
        if isinstance(node, dict) and data.draw(st.booleans()):
            del node[key]
        else:
            node[key] = copy.deepcopy(data.draw(junk))
    for read in READERS:
        with suppress(CassetteError):
            read(box[0], tensors, source=SOURCE)


@pytest.mark.parametrize(
    "skeleton",
    [
        {"$": None},
        {"$": 1},
        {"$": ["tuple"]},
        {"$": "no such"},
        {"$": "torch.no such"},
        {"$": "tuple"},
        {"$": "tuple", "items": 1},
        {"$": "set", "items": [[]]},
        {"$": "dict", "keys": [1], "values": []},
        {"$": "dict", "keys": [[]], "values": [1]},
        {"$": "int", "little_endian": "text"},
        {"$": "complex", "parts": [1, 2, 3]},
        {"$": "datetime", "iso": "yesterday", "fold": 0, "zone": None},
        {"$": "datetime", "iso": "2026-01-01", "fold": 2, "zone": None},
        {"$": "timedelta", "parts": [10**18, 0, 0]},
        {"$": "decimal", "value": "ten"},
        {"$": "uuid", "value": "x"},
        {"$": "fraction", "items": [1, 0]},
        {"$": "range", "items": [0, 1, 0]},
        {"$": "path", "class": "Nowhere", "value": "a"},
        {"$": "path", "class": "PosixPath", "value": 1},
        {"$": "defaultdict", "factory": "eval", "keys": [], "values": []},
        {"$": "deque", "items": [], "maxlen": -1},
        {"$": "torch.layout", "name": "no such"},
        {"$": "torch.size", "sizes": ["a"]},
        {"$": "omitted"},
        msgpack.ExtType(1, b""),
        msgpack.Timestamp(1),
        {"a": [msgpack.ExtType(1, b"")]},
    ],
    ids=str,
)
def test_a_malformed_node_is_damage(skeleton):
    with pytest.raises(CassetteCorruptError, match=r"step-000001\.msgpack is damaged: "):
        tree.join(skeleton, {}, source=SOURCE)


@pytest.mark.parametrize("read", READERS)
def test_a_skeleton_nested_beyond_python_is_damage(read):
    deep = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(CassetteCorruptError, match="recursion limit"):
        read(deep, {}, source=SOURCE)


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rollout_cassettes.cassette.tree.pillow", None)
    with pytest.raises(UnstorableValueError, match=r"holds a PIL\.image, which can't be made here"):
        tree.join({"$": "PIL.image", "key": "a"}, {}, source=SOURCE)


@pytest.mark.parametrize("error", [MemoryError, type("OutOfMemoryError", (RuntimeError,), {})])
def test_a_lack_of_memory_is_not_taken_for_damage(error):
    class Full(dict):
        def __getitem__(self, key):
            raise error

    with pytest.raises(error):
        tree.join({"$": "torch.tensor", "key": "a"}, Full(), source=SOURCE)


def test_what_has_no_plain_key_becomes_a_list_where_no_class_is_wanted():
    pairs = {"$": "dict", "keys": [{"$": "tuple", "items": [[1]]}], "values": [2]}
    assert tree.plain(pairs, {}, source=SOURCE) == [(([1],), 2)]
    members = {"$": "set", "items": [{"$": "tuple", "items": [[1]]}]}
    assert tree.plain(members, {}, source=SOURCE) == [([1],)]
