"""Which fields of a response were read: never fewer than were."""

from __future__ import annotations

import copy
import json
import operator
import pickle

import pytest
import torch
from tensordict import TensorDict

import rollout_cassettes as rc
from rollout_cassettes.adapters.reading import watched

ALL = {"a", "b"}

DICTS = {
    "d['a']": ({"a"}, lambda d: d["a"]),
    "get": ({"a"}, lambda d: d.get("a")),
    "pop": ({"a"}, lambda d: d.pop("a")),
    "del": ({"a"}, lambda d: d.__delitem__("a")),
    "setdefault": ({"a"}, lambda d: d.setdefault("a", 0)),
    "asking for it": ({"a"}, lambda d: "a" in d),
    "asking for another": (set(), lambda d: "c" in d),
    "one of one's own": (set(), lambda d: (d.__setitem__("c", 3), d["c"])),
    "whether there is anything": (set(), bool),
    "iterating": (ALL, list),
    "keys": (ALL, lambda d: list(d.keys())),
    "values": (ALL, lambda d: list(d.values())),
    "items": (ALL, lambda d: list(d.items())),
    "backwards": (ALL, lambda d: list(reversed(d))),
    "popitem": (ALL, lambda d: d.popitem()),
    "len": (ALL, len),
    "dict()": (ALL, dict),
    "**": (ALL, lambda d: {**d}),
    "keywords": (ALL, lambda d: dict(**d)),
    "update": (ALL, lambda d: dict.update({}, d)),
    "|": (ALL, lambda d: d | {"c": 3}),
    "| behind": (ALL, lambda d: {"c": 3} | d),
    "==": (ALL, lambda d: d == {"a": 1}),
    "!=": (ALL, lambda d: operator.ne({"a": 1}, d)),
    "copy": (ALL, lambda d: d.copy()),
    "copy.copy": (ALL, copy.copy),
    "deepcopy": (ALL, copy.deepcopy),
    "pickle": (ALL, lambda d: pickle.loads(pickle.dumps(d))),
    "json": (ALL, json.dumps),
    "repr": (ALL, repr),
}


@pytest.mark.parametrize("how", DICTS)
def test_reads_of_a_dict(how):
    """And what is read is what a plain dict gives."""
    expected, read = DICTS[how]
    seen: set[str] = set()
    value = watched({"a": 1, "b": 2}, seen.update)
    assert isinstance(value, dict)
    assert seen == set()
    found = read(value)
    assert seen == expected
    plain = {"a": 1, "b": 2}
    assert found == read(plain)
    assert dict(value) == plain


TENSORDICTS = {
    "t['a']": ({"a"}, lambda t: t["a"]),
    "get": ({"a"}, lambda t: t.get("a")),
    "select": ({"a"}, lambda t: t.select("a")),
    "pop": ({"a"}, lambda t: t.pop("a")),
    "setting": (set(), lambda t: t.set("c", torch.ones(3))),
    "len": (set(), len),
    "a row": (ALL, lambda t: t[0]),
    "rows": (ALL, lambda t: t[torch.tensor([True, False, True])]),
    "keys": (ALL, lambda t: list(t.keys())),
    "to": (ALL, lambda t: t.to(torch.float64)),
    "clone": (ALL, lambda t: t.clone()),
    "split": (ALL, lambda t: t.split(1)),
    "cat": (ALL, lambda t: torch.cat([t, t])),
    "pickle": (ALL, lambda t: pickle.loads(pickle.dumps(t))),
    "update": (ALL, lambda t: TensorDict({}, batch_size=[3]).update(t)),
}


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("how", TENSORDICTS)
def test_reads_of_a_tensordict(how, locked):
    """It stays what it is."""
    expected, read = TENSORDICTS[how]
    value = TensorDict({"a": torch.ones(3), "b": torch.zeros(3, 2)}, batch_size=[3])
    if locked and how in ("pop", "setting"):
        return
    seen: set[str] = set()
    value = watched(value.lock_() if locked else value, seen.update)
    assert type(value) is TensorDict
    assert seen == set()
    read(value)
    assert seen == expected


@pytest.mark.parametrize("value", [[1], (1, 2), "text", None, torch.ones(2), {"a": 1, 2: 3}])
def test_what_has_no_fields_is_refused(value):
    with pytest.raises(rc.CassetteError, match="can't be observed"):
        watched(value, print)
