"""Dataclasses from what was read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rollout_cassettes.cassette.schema import build


@dataclass
class Entry:
    number: int
    text: str | None
    names: list[str]
    versions: dict[str, int]
    seconds: float
    anything: Any


GOOD = {
    "number": 1,
    "text": None,
    "names": ["a"],
    "versions": {"a": 1},
    "seconds": 1.5,
    "anything": object,
}


@pytest.mark.parametrize(
    "change", [{}, {"text": "x"}, {"names": []}, {"seconds": 2}, {"anything": 1}]
)
def test_entries_of_the_right_types_make_a_dataclass(change):
    assert vars(build(Entry, {**GOOD, **change})) == {**GOOD, **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": True}, "its entry 'number' is bool"),
        ({"number": 1.0}, "'number'"),
        ({"text": b"x"}, "'text'"),
        ({"names": ("a",)}, "'names'"),
        ({"names": [1]}, "'names'"),
        ({"versions": {1: 1}}, "'versions'"),
        ({"versions": {"a": "1"}}, "'versions'"),
        ({"seconds": "2"}, "'seconds'"),
        ({"more": 1}, "missing or unknown: more"),
        ({1: 1}, "missing or unknown: 1"),
    ],
)
def test_an_entry_of_another_type_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        build(Entry, {**GOOD, **change})


@pytest.mark.parametrize("name", list(GOOD))
def test_a_missing_entry_is_named(name):
    with pytest.raises(ValueError, match=f"missing or unknown: {name}"):
        build(Entry, {key: value for key, value in GOOD.items() if key != name})
