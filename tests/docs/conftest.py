"""Fixtures that run pages: a `__main__` and a directory of their own, and trainers of verl's, TRL's and torchrl's."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.torchrl.conftest import train_torchrl
from tests.trl.conftest import train_trl
from tests.verl.conftest import assets, dataset_cache, local_queue, train

__all__ = ["assets", "dataset_cache", "local_queue", "train", "train_torchrl", "train_trl"]


@pytest.fixture
def main(monkeypatch, tmp_path):
    """A fresh `__main__`, in an empty directory that modules can be imported from."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("ROLLOUT_CASSETTES_PATH", raising=False)
    before = set(sys.modules)
    yield module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
