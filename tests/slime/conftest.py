"""Fixtures with slime's types, and with those of miles where it is installed."""

from __future__ import annotations

import gc

import pytest

from tests.published import is_installed
from tests.slime import rollouts


@pytest.fixture(scope="module", params=["slime", "miles"])
def framework(request):
    """The types of slime: stand-ins, since it is published as no package; and of miles."""
    if request.param == "slime":
        with rollouts.stand_ins() as types:
            yield types
    elif is_installed("miles"):
        yield rollouts.types_of("miles")
    else:
        pytest.skip("needs miles")


@pytest.fixture(autouse=True)
def no_calls():
    """Forget what the rollout functions were called for, and close the sessions of other tests."""
    rollouts.calls.clear()
    yield
    gc.collect()


@pytest.fixture
def path(tmp_path):
    """Where cassettes go."""
    return tmp_path / "cassette"
