"""Settings of the tests of the cassette layer."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from rollout_cassettes.cassette.tree import codec
from tests.marks import mark_all

#: What torch says once of each of its types that it calls unfinished.
FOREIGN_WARNINGS = (
    "ignore:ComplexHalf support is experimental:UserWarning",
    "ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning",
)


def pytest_collection_modifyitems(items):
    """Let the tests of this directory pass over warnings that aren't ours."""
    here = Path(__file__).parent
    mark_all(items, here, *map(pytest.mark.filterwarnings, FOREIGN_WARNINGS))
    if not find_spec("verl"):
        verls = [item for item in items if item.get_closest_marker("verl")]
        mark_all(verls, here, pytest.mark.skip(reason="verl is not installed"))


@pytest.fixture
def fresh_table(monkeypatch):
    """Forget the codecs that a test registers."""
    for module in codec._LIBRARIES.values():  # what is loaded in the test would be forgotten too
        importlib.import_module(module)
    monkeypatch.setattr(codec, "_by_type", dict(codec._by_type))
    monkeypatch.setattr(codec, "_by_kind", dict(codec._by_kind))
    return codec
