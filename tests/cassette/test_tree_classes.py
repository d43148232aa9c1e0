"""Enumerations, named tuples and dataclasses, in trees."""

from __future__ import annotations

import sys
from collections import namedtuple
from types import ModuleType

import pytest

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests.cassette import samples
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored
from tests.cassette.sameness import assert_same


def join(node):
    return tree.join(node, {}, source=SOURCE)


def blank(cls, **attributes):
    """Return an instance whose constructor never ran."""
    value = object.__new__(cls)
    value.__dict__.update(attributes)
    return value


@pytest.mark.parametrize(
    "value",
    [
        samples.Colour.RED,
        samples.Colour.LIME,
        samples.Priority.HIGH,
        samples.Role.USER,
        samples.Permission(0),
        samples.Permission.READ | samples.Permission.RUN,
        samples.Bits(3),
        samples.Bits(8),
        samples.Unstorable.MEMBER,
    ],
    ids=str,
)
def test_an_enum_comes_back_as_the_member_itself(value):
    assert round_trip(value) is value


@pytest.mark.skipif(sys.version_info < (3, 11), reason="StrEnum came with Python 3.11")
def test_a_str_enum_comes_back_as_the_member_itself(monkeypatch):
    import enum

    word = enum.StrEnum("Word", ["YES"], module=__name__)
    monkeypatch.setattr(sys.modules[__name__], "Word", word, raising=False)
    assert round_trip(word.YES) is word.YES


@pytest.mark.parametrize(
    "value",
    [
        samples.Point(1, [2]),
        samples.Turn("user"),
        samples.Sample("1 + 1", [1.0]),
        samples.Frozen(samples.Frozen(None)),
        samples.Slotted({1: 2}, ()),
        samples.Late(1),
        samples.Outer.Inner(1),
        blank(samples.Checked, value=1),
        blank(samples.Sample, prompt="no reward"),
        blank(samples.Described, _kept=7),
        blank(samples.Sample, prompt=1, reward=2, extra={"a": (1,)}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_comes_back_the_same_without_its_constructor(value):
    assert_same(value, round_trip(value))


def test_a_slot_that_is_no_field_is_not_lost():
    value = samples.Derived(1)
    value.hidden = [2]
    value._Base__private = 3
    again = round_trip(value)
    assert (again.value, again.hidden, again._Base__private) == (1, [2], 3)


def test_an_empty_slot_stays_empty():
    assert not hasattr(round_trip(samples.Derived(1)), "hidden")


def labelled():
    value = samples.Labelled(1, 2)
    value.label = "lost?"
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (labelled(), "attributes beside its fields"),
        (samples.local_class()(), "can't be found again under its name"),
        (namedtuple("Local", "a")(1), "can't be found again"),
        (samples.Mortal(1), "no codec knows this type"),
        (samples.Failure(1), "not safe"),
        (samples.Mapping(), "not safe"),
        (samples.Opaque(), "no codec knows this type"),
        (samples.Sample, "no codec knows this type"),
    ],
    ids=[
        "attributes",
        "local",
        "local namedtuple",
        "__del__",
        "exception",
        "dict",
        "object",
        "class",
    ],
)
def test_what_is_more_than_its_fields_is_refused(value, reason):
    with pytest.raises(UnstorableValueError, match=reason):
        round_trip(value)


def test_a_class_is_never_imported_because_a_cassette_says_so(monkeypatch, tmp_path):
    (tmp_path / "trap.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    node = {"$": "dataclass", "class": "trap:Trap", "fields": {}, "extras": {}}
    with pytest.raises(UnstorableValueError, match="has not imported it") as caught:
        join(node)
    assert "Run `import trap` first." in str(caught.value)


@pytest.mark.parametrize(
    ("name", "package"),
    [("verl.protocol:DataProto", "verl"), ("transfer_queue.metadata:KVBatchMeta", "TransferQueue")],
)
def test_a_batch_of_a_framework_that_is_not_installed_can_be_read_as_plain_values(
    name, package, monkeypatch
):
    """Whoever was sent a cassette may have the library alone."""
    monkeypatch.setitem(sys.modules, name.partition(":")[0], None)
    node = {"$": "dataclass", "class": name, "fields": {}, "extras": {}}
    with pytest.raises(UnstorableValueError, match=f"{package} can't be imported") as caught:
        join(node)
    assert [fix.partition(" ")[0] for fix in caught.value.fixes] == ["Read", "Install"]


@pytest.mark.parametrize("name", ["os:system", "os:path.join", "sys:modules", "builtins:dict", ":"])
@pytest.mark.parametrize("kind", ["dataclass", "enum", "namedtuple"])
def test_nothing_but_such_classes_can_be_named(kind, name):
    entries = {"fields": {}, "extras": {}, "items": [], "name": "A", "value": 1}
    with pytest.raises((CassetteCorruptError, UnstorableValueError)):
        join({"$": kind, "class": name, **entries})


def test_an_attribute_can_be_put_only_where_the_class_has_room():
    node = stored(samples.Slotted(1))[0]
    node["extras"] = {"__class__": "x"}
    with pytest.raises(CassetteCorruptError):
        join(node)


def test_a_method_can_be_hidden_only_by_data():
    """Extras go into the instance's own dictionary: never onto the class, never through setters."""
    node = stored(samples.Described.__new__(samples.Described))[0]
    node["extras"] = {"value": 1}
    assert vars(join(node)) == {"value": 1}


@pytest.fixture
def changed(monkeypatch):
    """A module whose classes can change between recording and reading."""
    module = ModuleType("changing")
    monkeypatch.setitem(sys.modules, "changing", module)
    return module


def test_a_class_that_lost_a_field_is_named_with_both_lists(changed):
    from dataclasses import make_dataclass

    changed.Row = make_dataclass("Row", ["a", "b"], namespace={"__module__": "changing"})
    node = stored(changed.Row(1, 2))[0]
    changed.Row = make_dataclass("Row", ["a"], namespace={"__module__": "changing"})
    with pytest.raises(UnstorableValueError, match=r"\['a', 'b'\], and has \['a'\] here"):
        join(node)


def test_a_namedtuple_with_other_fields_is_named_with_both_lists(changed):
    changed.Row = namedtuple("Row", "a b", module="changing")
    node = stored(changed.Row(1, 2))[0]
    changed.Row = namedtuple("Row", "b a", module="changing")
    with pytest.raises(UnstorableValueError, match=r"\['a', 'b'\], and has \['b', 'a'\] here"):
        join(node)


def test_an_enum_that_lost_a_member_is_named(changed):
    import enum

    changed.Kind = enum.Enum("Kind", "A B", module="changing")
    node = stored(changed.Kind.B)[0]
    changed.Kind = enum.Enum("Kind", "A", module="changing")
    with pytest.raises(UnstorableValueError, match=r"\['B'\], and has \['A'\] here"):
        join(node)


def test_a_namedtuple_has_as_many_items_as_fields():
    node = stored(samples.Point(1, 2))[0]
    node["items"].append(3)
    with pytest.raises(CassetteCorruptError):
        join(node)


def test_objects_are_plain_where_no_class_is_wanted():
    value = [samples.Point(1, 2), blank(samples.Sample, prompt=1, extra=2), samples.Colour.RED]
    assert plain(value) == [{"x": 1, "y": 2}, {"prompt": 1, "extra": 2}, "RED"]
