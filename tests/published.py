"""Modules of frameworks, as they were published, where the framework itself is not installed.

A stand-in has the names, signatures and fields that its framework published, and nothing of what it
does. Where the framework is installed, the same tests run with the real module.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def published(name: str, stand_in: Path) -> Iterator[ModuleType]:
    """Give a framework's module; or a stand-in, under its name and for as long as the block takes.

    Args:
        name: The module's name.
        stand_in: The file of the stand-in.
    """
    if is_installed(name):
        yield importlib.import_module(name)
        return
    spec = importlib.util.spec_from_file_location(name, stand_in)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def is_installed(name: str) -> bool:
    """Tell whether the framework that a module belongs to is installed."""
    return importlib.util.find_spec(name.partition(".")[0]) is not None
