"""Fixtures that train with the real verl 0.9.1."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest

from tests.marks import mark_all

collect_ignore_glob = [] if find_spec("verl") else ["test_*.py"]

#: What others warn of when verl 0.9.1 is imported or run; nothing of it is ours to mend.
FOREIGN_WARNINGS = (
    # verl imports ray.experimental.state, which Ray 2.60 calls deprecated.
    "ignore:Ray state API is no longer experimental:DeprecationWarning",
    # verl tries to import every training engine that it knows.
    r"ignore:\w+ engine is not available:UserWarning:verl\.workers\.engine",
    # verl's trainer loads a custom sampler by a function that verl calls deprecated.
    r"ignore:.*Function 'verl\.utils\.import_utils\.load_extern_type':FutureWarning",
    # torchdata 0.11 calls a function that torch 2.13 calls deprecated.
    "ignore:'set_vital' is deprecated:UserWarning",
)


def pytest_collection_modifyitems(items):
    """Let the tests of this directory pass over warnings that aren't ours."""
    foreign = map(pytest.mark.filterwarnings, FOREIGN_WARNINGS)
    mark_all(items, Path(__file__).parent, *foreign)


@pytest.fixture(scope="session")
def assets(tmp_path_factory):
    """The toy task: tokenizer, model, prompts and reward function."""
    from rollout_cassettes.demo.assets import make_assets

    return make_assets(tmp_path_factory.mktemp("assets"))


@pytest.fixture(scope="session")
def local_queue():
    """TransferQueue as threads of this process, started once."""
    from tests.verl.local_queue import LocalQueue

    queue = LocalQueue()
    yield queue
    queue.close()


@pytest.fixture(scope="session")
def dataset_cache(tmp_path_factory):
    """Keep what `datasets` makes of the prompts out of the user's own cache."""
    import datasets

    with mock.patch.object(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache")):
        yield


@pytest.fixture(scope="session")
def train(assets, local_queue, dataset_cache, tmp_path_factory):
    """Train in this process: `train(steps=3, overrides=(), *, fail=()) -> TrainingRun`."""
    from tests.verl.event_loop import EventLoopThread
    from tests.verl.local_training import LocalTraining

    with EventLoopThread() as loop:
        yield LocalTraining(assets, local_queue, loop, tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="session")
def train_on_ray(assets, dataset_cache, tmp_path_factory):
    """Train through Ray actors: `train_on_ray(steps=3, overrides=(), *, fail=()) -> TrainingRun`.

    Starts a cluster, which takes half a minute. Tests that use it are marked `ray`.
    """
    from tests.verl.ray_training import RayTraining

    with RayTraining(assets, tmp_path_factory.mktemp("ray")) as training:
        yield training
