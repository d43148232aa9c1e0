"""Values of Python's own types, in trees."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import json
import math
import pathlib
import struct
import subprocess
import sys
import zoneinfo

import pytest
from hypothesis import given

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests import strategies
from tests.cassette.round_trip import SOURCE, round_trip, stored
from tests.cassette.sameness import assert_same


@given(strategies.containers(strategies.leaves))
def test_containers_come_back_the_same(value):
    assert_same(value, round_trip(value))


@pytest.mark.parametrize(
    "value",
    [
        True,
        0,
        -(2**63),
        2**63,
        2**64 - 1,
        2**64,
        -(2**63) - 1,
        10**5000,
        -(10**5000),
        -0.0,
        math.inf,
        math.nan,
        struct.unpack("<d", b"\x01\0\0\0\0\0\xf0\x7f")[0],
        complex(-0.0, math.nan),
        complex(math.inf, -0.0),
        "\ud800 alone",
        "e\u0301 and \u00e9",
        "\0",
        "",
        b"\0\xff",
        bytearray(b"\0"),
        ...,
        decimal.Decimal("sNaN123"),
        decimal.Decimal("-0E+7"),
        range(10**30, 0, -7),
        slice(None, -1, "step"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_extreme_value_comes_back_the_same(value):
    assert_same(value, round_trip(value))


@pytest.mark.parametrize(
    "value",
    [
        {"": 1, "/": 2, "~": 3, "~1": 4, "a/b": 5, "a": {"b": 6}, "\ud800": 7},
        {"$": "torch.tensor", "key": "nothing"},
        {"$": {"$": {"$": 1}}},
        {1: "int", "1": "str", 1.5: "float", None: "none", (1, ("a",)): "tuple", b"1": "bytes"},
        {10**5000: "a key that str() refuses"},
        {float("nan"): 1},
        {True: "a boolean, equal to 1"},
        collections.OrderedDict(b=1, a=2),
        collections.defaultdict(None, {1: 2}),
        collections.defaultdict(set, a={1}),
        collections.deque([1, 2, 3], maxlen=2),
        collections.deque(),
        {frozenset({1, frozenset()}), (), "", 0, None},
        [[[]], (), [()], {}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_container_comes_back_the_same(value):
    assert_same(value, round_trip(value))


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        dt.datetime.min,
        dt.datetime.max.replace(tzinfo=dt.timezone.utc),
        dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, microseconds=1), "")),
        dt.time(1, 2, 3, 4, fold=1, tzinfo=zoneinfo.ZoneInfo("UTC")),
        dt.time.max,
        dt.date.min,
        dt.timedelta.min,
        dt.timedelta.max,
        dt.timezone.utc,
        dt.timezone(dt.timedelta(0), "UTC"),
        zoneinfo.ZoneInfo("America/St_Johns"),
    ],
    ids=repr,
)
def test_a_moment_comes_back_the_same(value):
    assert_same(value, round_trip(value))


def test_the_time_zone_utc_comes_back_as_itself():
    assert round_trip(dt.timezone.utc) is dt.timezone.utc


@pytest.mark.parametrize(
    "value",
    [
        pathlib.Path("/a/../b"),
        pathlib.Path(),
        pathlib.PurePosixPath("a\udcff"),
        pathlib.PureWindowsPath(r"C:\a/b"),
    ],
    ids=repr,
)
def test_a_path_comes_back_the_same(value):
    assert_same(value, round_trip(value))


def test_a_path_of_another_system_comes_back_as_its_pure_twin():
    node = {"$": "path", "class": "WindowsPath", "value": r"C:\a"}
    assert_same(pathlib.PureWindowsPath(r"C:\a"), tree.join(node, {}, source=SOURCE))


class Zone(dt.tzinfo):
    """A time zone that only this process knows."""

    def utcoffset(self, moment):
        return dt.timedelta(0)


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1, tzinfo=Zone()),
        dt.time(tzinfo=Zone()),
        collections.defaultdict(lambda: 0),
        collections.defaultdict(collections.deque),
    ],
    ids=["datetime", "time", "lambda", "factory"],
)
def test_a_value_that_refers_to_code_is_refused(value):
    with pytest.raises(UnstorableValueError, match=r"^response/1 is a "):
        round_trip([0, value])


def test_a_time_zone_that_is_not_installed_is_named():
    node = {"$": "timezone", "zone": {"name": "Europe/Atlantis"}}
    with pytest.raises(UnstorableValueError, match=r"Europe/Atlantis.*not known here") as caught:
        tree.join(node, {}, source=SOURCE)
    assert "tzdata" in str(caught.value)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\0b", "Europe"])
def test_a_time_zone_is_looked_up_nowhere_but_among_time_zones(name):
    node = {"$": "timezone", "zone": {"name": name}}
    with pytest.raises((CassetteCorruptError, UnstorableValueError)):
        tree.join(node, {}, source=SOURCE)


def test_a_set_has_the_same_skeleton_in_every_process():
    """Fingerprints of requests are compared across processes, whose strings hash differently."""
    script = (
        "import json; from rollout_cassettes.cassette.tree import split;"
        "print(json.dumps(split([{'a', 'b', 'c', 1, (2, 'd')}, frozenset('efgh')]).skeleton))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())[0]["items"]) == 5


def test_only_what_msgpack_lacks_becomes_a_node():
    value = {"a": [None, True, -1, 2**64 - 1, 0.5, "x", b"x", {"b": {}}]}
    assert stored(value)[0] == value
