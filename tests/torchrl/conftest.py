"""Fixtures that train with the real torchrl."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.marks import mark_all

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
    foreign = map(pytest.mark.filterwarnings, FOREIGN_WARNINGS)
    mark_all(items, Path(__file__).parent, pytest.mark.torchrl, *foreign)


@pytest.fixture(scope="session")
def train_torchrl(tmp_path_factory):
    """Train in this process: `train_torchrl(session=None, **options) -> TrainingRun`."""
    from tests.torchrl.training import Training

    return Training(tmp_path_factory.mktemp("torchrl"))
