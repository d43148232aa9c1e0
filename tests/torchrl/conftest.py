"""Fixtures that train with the real torchrl."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("torchrl") else ["test_*.py"]

#: What others warn of when torchrl is imported or run; nothing of it is ours to mend.
FOREIGN_WARNINGS = (
    "ignore:The env passed to .*LLMCollector is missing transforms:FutureWarning",
    "ignore:The env passed to Later is missing transforms:FutureWarning",
    "ignore:size_average and reduce args:UserWarning",
    "ignore::DeprecationWarning:torchrl",
)


def pytest_collection_modifyitems(items):
    """Mark the tests of this directory, and let them pass over warnings that aren't ours."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.torchrl)
            for warning in FOREIGN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def train_torchrl(tmp_path_factory):
    """Train in this process: `train_torchrl(session=None, **options) -> TrainingRun`."""
    from tests.torchrl.training import Training

    return Training(tmp_path_factory.mktemp("torchrl"))
