"""Cassettes that no test used: they are listed, and never deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rollout_cassettes.cassette import Cassette
from rollout_cassettes.cassette.manifest import SUFFIX
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.pytest_plugin.place import node_id
from rollout_cassettes.pytest_plugin.report import shown

NODE_ID = "node_id"
"""The metadata of a test's cassette: whose it is."""

SHARED = "use_rollout_cassette"
"""The metadata of a cassette that a fixture opened: its name."""

_PARTIAL = (
    *("lf", "stepwise", "ignore", "ignore_glob"),
    *("collectonly", "setupplan", "disable_rollout_cassettes"),
)
"""Options with which tests are not collected, or not run, or cassettes not opened."""


class Suite:
    """The tests that were collected, the cassettes that they use, and those that are there.

    A test that was deselected, skipped, or failed before it came to its rollouts still has a use for
    its cassette. A cassette says in its manifests which test recorded it: if that test was not collected,
    though its file was, or its file is gone, and no other test used it, the cassette is an orphan.
    Cassettes that fixtures opened can be judged only where every test was run, and passed. Those that
    this plugin did not record are none of its business.

    Args:
        config: pytest's.

    Attributes:
        used: The cassettes that were opened.
        files: The test files that were collected.
        is_complete: Whether every test was collected, ran and passed.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.used: set[Path] = set()
        self.files: set[Path] = set()
        self.is_complete = _selects_nothing(config)
        self._root = config.rootpath
        self._cassettes = config.getini("rollout_cassette_dir")
        self._parts = {file.resolve() for file in _files_in_part(config)}
        self._expected: set[Path] = set()
        self._tests: set[str] = set()
        self._told: list[Mapping[str, Any] | None] = []

    def expect(self, item: pytest.Item, path: Path) -> None:
        """Take note of a test, and of its cassette if no fixture says otherwise."""
        self._tests.add(node_id(item))
        self._expected.add(path)

    # ---- from a worker of xdist to where it was started

    def to_plain(self) -> dict[str, Any]:
        """Return what is known as plain values, to be sent to another process."""
        certain, shared = self._unused()
        return {
            "used": [str(path) for path in self.used],
            "certain": [str(path) for path in certain],
            "shared": [str(path) for path in shared],
            "is_complete": self.is_complete,
        }

    def merge(self, told: Mapping[str, Any] | None) -> None:
        """Add what a worker told; None where it crashed."""
        self._told.append(told)

    def lines(self) -> Iterator[str]:
        """Give the lines of the report that speak of orphans."""
        told = self._told or [self.to_plain()]
        if any(each is None for each in told):
            yield "orphans were not looked for: a worker crashed, and took what it knew with it"
            return
        parts = [each for each in told if each is not None]
        used = {path for each in parts for path in each["used"]}
        orphans = {path for each in parts for path in each["certain"]} - used
        shared = {path for each in parts for path in each["shared"]} - used
        if all(each["is_complete"] for each in parts):
            orphans |= shared
        elif shared:
            yield f"not judged, since not every test ran and passed:{self._listed(shared)}"
        if orphans:
            yield f"used by no test:{self._listed(orphans)}"

    def _listed(self, paths: set[str]) -> str:
        return "".join(f"\n  {shown(Path(path), self._root)}" for path in sorted(paths))

    # ---- looking

    def _unused(self) -> tuple[list[Path], list[Path]]:
        """Return the cassettes that belong to no test, and those of fixtures that were not opened."""
        certain, shared = [], []
        for path in self._found() - self.used - self._expected:
            metadata = _metadata(path)
            test = metadata.get(NODE_ID)
            if SHARED in metadata:
                shared.append(path)
            elif isinstance(test, str) and test not in self._tests and self._is_known(test):
                certain.append(path)
        return certain, shared

    def _is_known(self, test: str) -> bool:
        """Tell whether a test would have been collected if it were there."""
        file = self._root / test.partition("::")[0]
        collected = file in self.files and file.resolve() not in self._parts
        return collected or not file.exists()

    def _found(self) -> set[Path]:
        """Return the cassettes near the test files, and those in the root directory."""
        places = {file.parent / self._cassettes for file in self.files}
        places.add(self._root / self._cassettes)
        manifests = (each for place in places for each in place.rglob(f"step-*{SUFFIX}"))
        found = {manifest.parent for manifest in manifests}
        return {path for path in found if not path.name.startswith(".")}


def _metadata(path: Path) -> Mapping[str, Any]:
    """Return what the first manifest of a cassette says of its origin; nothing if it can't be read."""
    try:
        return next(iter(Cassette(path))).manifest.metadata
    except (CassetteError, OSError, StopIteration):
        return {}


def _selects_nothing(config: pytest.Config) -> bool:
    sources = pytest.Config.ArgsSource
    chosen = config.args_source is sources.ARGS
    if config.args_source is sources.INVOCATION_DIR:
        chosen = config.invocation_params.dir != config.rootpath
    return not (chosen or any(getattr(config.option, name, False) for name in _PARTIAL))


def _files_in_part(config: pytest.Config) -> Iterator[Path]:
    """Give the test files of which not every test is collected."""
    for argument in config.args:
        file, colons, _ = argument.partition("::")
        if colons:
            yield config.invocation_params.dir / file
