"""Errors: what happened and where, as text and as attributes, and how to mend it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollout_cassettes as rc
from rollout_cassettes import errors


def error_classes():
    return [getattr(errors, name) for name in errors.__all__]


def test_all_of_them_have_one_base():
    assert all(issubclass(cls, rc.CassetteError) for cls in error_classes())
    assert issubclass(rc.CassetteError, Exception)


def test_all_of_them_can_be_imported_from_the_package():
    assert all(getattr(rc, cls.__name__) is cls for cls in error_classes())


def test_the_message_is_what_happened_and_numbered_ways_to_fix_it():
    error = rc.CassetteError("The disk is full.", fixes=["Free space.", "Buy a disk."])
    assert str(error) == "The disk is full.\nTo fix it:\n  1. Free space.\n  2. Buy a disk."
    assert (error.what, error.fixes) == ("The disk is full.", ("Free space.", "Buy a disk."))
    assert str(rc.CassetteError("The disk is full.")) == "The disk is full."


@pytest.mark.parametrize("cls", error_classes())
def test_causes_are_attributes_and_survive_pickling(cls):
    """As they must, to come back from a Ray actor or a pytest-xdist worker."""
    error = cls("What.", fixes=["Fix."], path=Path("/run"), step=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)
    assert (again.path, again.step, again.fixes) == (Path("/run"), 3, ("Fix.",))


@pytest.mark.parametrize(
    ("steps", "text", "named"),
    [
        ([], "none", "no steps"),
        ([7], "7", "step 7"),
        ([1, 2], "1-2", "steps 1-2"),
        ([7, 3, 1, 2, 2], "1-3, 7", "steps 1-3, 7"),
    ],
)
def test_steps_are_written_as_people_do(steps, text, named):
    assert errors.spans(iter(steps)) == text
    assert errors.named_steps(iter(steps)) == named


@given(st.text(), st.integers(2, 200))
def test_long_values_are_cut(text, width):
    shown = errors.shorten(text, width)
    assert len(shown) <= width
    assert shown == repr(text) or shown == repr(text)[: width - 1] + "…"
