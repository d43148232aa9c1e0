"""Fixtures that train with the real TRL."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest

from tests.marks import mark_all

collect_ignore_glob = [] if find_spec("trl") else ["test_*.py"]

#: What others warn of when TRL is imported or run; nothing of it is ours to mend.
FOREIGN_WARNINGS = (
    # A tiny model on a CPU: torch's DataLoader is asked to pin memory.
    "ignore:'pin_memory' argument is set as true:UserWarning",
)


def pytest_collection_modifyitems(items):
    """Mark the tests of this directory, and let them pass over warnings that aren't ours."""
    foreign = map(pytest.mark.filterwarnings, FOREIGN_WARNINGS)
    mark_all(items, Path(__file__).parent, pytest.mark.trl, *foreign)


@pytest.fixture(scope="session")
def train_trl(tmp_path_factory):
    """Train in this process: `train_trl(session=None, trainer="GRPO", **options) -> TrainingRun`."""
    import datasets

    from tests.trl.training import Training

    cache = tmp_path_factory.mktemp("cache")
    with mock.patch.object(datasets.config, "HF_DATASETS_CACHE", cache):
        yield Training(tmp_path_factory.mktemp("trl"))
