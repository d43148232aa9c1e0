"""Settings of the tests of the cassette layer."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

#: What torch says once of each of its types that it calls unfinished.
FOREIGN_WARNINGS = (
    "ignore:ComplexHalf support is experimental:UserWarning",
    "ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning",
)

settings.register_profile(
    "cassette",
    deadline=None,  # the first example imports torch
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("cassette")


def pytest_collection_modifyitems(items):
    """Let the tests of this directory pass over warnings that aren't ours."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for warning in FOREIGN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))
            if item.get_closest_marker("verl") and not find_spec("verl"):
                item.add_marker(pytest.mark.skip(reason="verl is not installed"))
