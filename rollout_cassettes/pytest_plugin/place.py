"""Where a test's cassette is."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

_LONGEST = 120
"""Characters of a directory's name: file systems take 255 bytes, and a draft's name is longer."""

_ODD = re.compile(r"[^\w.\[\]=,+-]", re.ASCII)


def module_directory(test_file: Path, cassettes: str) -> Path:
    """Return the directory for the cassettes of a test file."""
    return test_file.parent / cassettes / directory_name(test_file.stem)


def name_in_module(item: pytest.Item) -> str:
    """Return what a test is called in its module, with its classes: ``TestLoss.test_step[a]``."""
    chain = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return ".".join([*chain, item.name])


def node_id(item: pytest.Item) -> str:
    """Return a test's node id, without the group that pytest-xdist's ``loadgroup`` adds to it."""
    parent = item.parent
    return item.nodeid if parent is None else f"{parent.nodeid}::{item.name}"


def directory_name(name: str) -> str:
    """Return a name as that of a directory, the same on every system.

    What is long, or has characters that file systems or shells treat specially, is cut or replaced; a
    hash of the name keeps it apart from others.
    """
    plain = _ODD.sub("-", name).strip(".") or "-"
    if plain == name and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{plain[: _LONGEST - 9]}-{digest}"
