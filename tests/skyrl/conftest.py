"""Fixtures with SkyRL's interface: the real one where SkyRL is installed, else a stand-in."""

from __future__ import annotations

import sys
import typing
from pathlib import Path

import pytest
import typing_extensions

from tests.published import is_installed, published

MODULE = "skyrl.train.generators.base"


@pytest.fixture(scope="session")
def base():
    """The module of SkyRL's interface."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 12) and is_installed(MODULE):
            # SkyRL is made for Python 3.12: pydantic does not take an older one's TypedDict.
            patch.setattr(typing, "TypedDict", typing_extensions.TypedDict)
        with published(MODULE, Path(__file__).with_name("interface.py")) as module:
            yield module


@pytest.fixture
def path(tmp_path):
    """Where cassettes go."""
    return tmp_path / "cassette"
