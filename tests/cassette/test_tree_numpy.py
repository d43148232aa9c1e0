"""numpy's arrays, scalars and dtypes, in trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests import strategies
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored
from tests.cassette.sameness import assert_same


@given(strategies.arrays())
def test_an_array_comes_back_the_same(array):
    assert_same(array, round_trip(array))
    assert_same(array, plain(array))


@given(strategies.scalars | strategies.dtypes)
def test_a_scalar_or_dtype_comes_back_the_same(value):
    assert_same(value, round_trip(value))


@given(strategies.object_arrays(strategies.leaves | strategies.arrays()))
def test_an_array_of_objects_comes_back_the_same(array):
    assert_same(array, round_trip(array))


def objects(*items, shape=None):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape or len(items))


@pytest.mark.parametrize(
    "array",
    [
        np.array(5),
        np.zeros((0, 3), np.float32),
        np.arange(6).reshape(2, 3)[:, ::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.broadcast_to(np.arange(3), (2, 3)),
        np.arange(3, dtype=">i4"),
        np.arange(3, dtype=np.longdouble) / 3,
        np.array([1 + 2j], np.complex64),
        np.array(["2026-01-01", "NaT"], "M8[us]"),
        np.array([5], "m8[25s]"),
        np.array(["a\0b", "\U0001f600"]),
        np.array([b"a\0b"]),
        np.ndarray((2, 2), "S0"),
        np.zeros(2, [("a", "<i2"), ("b", "U2", (2,)), ("c", [("d", ">f8")])]),
        np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
        np.zeros(1, np.dtype([(("title", "a"), "f4")])),
        objects(None, "a", [1], np.arange(2), {"x": 1}, shape=(5, 1)),
        objects([1, 2], [3, 4]),
        np.array(None, dtype=object),
        objects(),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_an_odd_array_comes_back_the_same(array):
    assert_same(array, round_trip(array))


def test_a_memory_map_comes_back_as_an_array(tmp_path):
    array = np.memmap(tmp_path / "map", np.int32, "w+", shape=(2, 2))
    array[:] = [[1, 2], [3, 4]]
    assert_same(np.array(array), round_trip(array))


@pytest.mark.parametrize(
    "value",
    [
        np.str_("a\0"),
        np.str_(""),
        np.str_("\ud800"),
        np.bytes_(b"a\0"),
        np.float64(-0.0),
        np.bool_(True),
        np.datetime64("NaT"),
        np.timedelta64(5, "25s"),
        np.longdouble(1) / 3,
        np.zeros(1, [("a", "i4")])[0],
        np.void(b"ab"),
        np.ndarray((), "V0")[()],
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_odd_scalar_comes_back_the_same(value):
    assert_same(value, round_trip(value))


def test_a_record_can_be_changed_like_the_one_that_was_recorded():
    record = round_trip(np.zeros(1, [("a", "i4")])[0])
    record["a"] = 7
    assert record["a"] == 7


def test_the_same_array_is_stored_once_and_shared_again():
    array = np.arange(3)
    skeleton, data = stored([array, array, array[:], array[1:]])
    assert list(data) == ["response/0", "response/3"]
    first, second, *_ = tree.join(skeleton, data, source=SOURCE)
    first[0] = 7
    assert second[0] == 7


def test_arrays_of_other_dtypes_in_the_same_memory_stay_what_they_are():
    array = np.arange(4, dtype=np.float32)
    views = [array, array.view(np.int32), array.view([("a", "f4")]), array.view("V4")]
    assert_same(views, round_trip(views))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.zeros(1, [("a", object)]), "refers to Python objects"),
        (np.rec.array([(1,)], dtype=[("a", "i4")])[0], "can't rebuild its dtype"),
        (np.ma.array([1]), "no codec knows this type"),
        (np.dtype((np.int32, (2,))), "can't rebuild its dtype"),
        (
            np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]}),
            "overlapping",
        ),
        pytest.param(
            np.array(["a"], getattr(np.dtypes, "StringDType", str)()),
            "refers to Python objects",
            marks=pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 1"),
        ),
    ],
    ids=["objects in fields", "record", "masked", "subarray", "overlapping", "strings"],
)
def test_what_numpy_could_not_rebuild_is_refused(value, reason):
    with pytest.raises(UnstorableValueError, match=reason):
        round_trip(value)


@pytest.mark.parametrize(
    "entries",
    [
        {"dtype": "|O", "shape": [1]},
        {"dtype": [["a", "|O"]], "shape": [1]},
        {"dtype": "<c8", "shape": [2**62]},
        {"dtype": "|S0", "shape": [2**40]},
        {"dtype": "no such", "shape": [1]},
        {"dtype": ["a"], "shape": [1]},
        {"dtype": "<c8", "shape": "1"},
        {"shape": [2], "objects": [1]},
        {"shape": [1], "objects": 1},
    ],
)
def test_a_malformed_array_is_damage(entries):
    skeleton, data = stored(np.array([1j], np.complex64))
    with pytest.raises(CassetteCorruptError):
        tree.join({"$": "numpy.array", "key": skeleton["key"], **entries}, data, source=SOURCE)


@pytest.mark.parametrize("data", [b"", b"123", b"1" * 9])
def test_a_scalar_has_the_bytes_of_its_dtype(data):
    node = {"$": "numpy.scalar", "dtype": "<f8", "data": data}
    with pytest.raises(CassetteCorruptError):
        tree.join(node, {}, source=SOURCE)


def test_arrays_of_bytes_are_aligned():
    """Numbers that safetensors doesn't know lie behind bytes, anywhere."""
    values = [np.arange(size, dtype=np.uint8) for size in range(1, 8)]
    complexes = [np.ones(2, np.complex128) * size for size in range(8)]
    for before, after in zip(complexes, round_trip([*values, *complexes])[7:], strict=True):
        assert after.flags.aligned
        assert_same(before, after)


def test_an_array_comes_back_without_the_metadata_of_its_dtype():
    array = np.arange(2, dtype=np.dtype(">i4", metadata={"unit": "m"}))
    assert_same(array, round_trip(array))
