"""The pytest plugin: it turns pytest's events and fixtures into calls on the run's one object.

pytest imports this module in every run where the library is installed. So it imports nothing of the
library, until a test uses a cassette or an option asks for something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rollout_cassettes.pytest_plugin.run import Run
    from rollout_cassettes.session import Session

RECORD_MODES = ("none", "once", "new_steps", "all", "rewrite")
"""Those of `use_cassette`, which would have to be imported to be asked."""

MARKER = (
    "rollout_cassette(name=None, steps=None, mode='cache', **options): replay the rollouts of this "
    "test from its cassette, or record them there; the options are those of use_cassette"
)

FIXTURE = "rollout_cassette"
"""The fixture, and the marker."""

_KEY = pytest.StashKey["Run"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rollout cassettes")
    group.addoption(
        "--rollout-record-mode",
        choices=RECORD_MODES,
        help="what to record: none (a test without its cassette fails), once (cassettes that are "
        "missing), new_steps (steps that are missing), all (every step again), rewrite (new "
        "cassettes, which take the old ones' places if their tests pass)",
    )
    group.addoption(
        "--disable-rollout-cassettes",
        action="store_true",
        help="record nothing and replay nothing: all rollouts go live",
    )
    group.addoption(
        "--block-rollouts",
        action="store_true",
        help="fail every test that makes a live rollout outside a cassette",
    )
    group.addoption(
        "--rollout-cassettes-report",
        action="store_true",
        help="list the cassettes that were used, and those that no test used",
    )
    parser.addini(
        "rollout_record_mode", "what to record: see --rollout-record-mode", default="none"
    )
    parser.addini(
        "rollout_cassette_dir",
        "where cassettes are, relative to the test file's directory",
        default="cassettes",
    )
    parser.addini("block_rollouts", "as --block-rollouts", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and do what the options ask for from the start."""
    config.addinivalue_line("markers", MARKER)
    blocks = config.option.block_rollouts or config.getini("block_rollouts")
    if blocks or config.option.rollout_cassettes_report:
        _run(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a marked test have the fixture, and take note of tests that use cassettes."""
    is_marked = item.get_closest_marker(FIXTURE) is not None
    if is_marked or FIXTURE in getattr(item, "fixturenames", ()):
        _run(item.config).expect(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do likewise for tests that a conftest.py has marked since."""
    for item in items:
        if item.get_closest_marker(FIXTURE) is not None:
            _run(item.config).expect(item)


def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Explain how cassettes or batches differ."""
    if op != "==" or "rollout_cassettes.cassette" not in sys.modules:
        return None
    from rollout_cassettes.pytest_plugin.comparison import explain  # noqa: PLC0415

    return explain(left, right, verbose=config.get_verbosity() > 0)


@pytest.fixture(scope="session")
def rollout_cassette_config() -> dict[str, Any]:
    """Give the options of cassettes, as the marker takes them; override it, in any scope."""
    return {}


@pytest.fixture(scope="module")
def rollout_cassette_dir(request: pytest.FixtureRequest) -> Path:
    """Give the directory in which a test's cassette is; override it, in any scope.

    By default ``cassettes/<test module>``, beside the test file.
    """
    return _run(request.config).directory_of(request.path)


@pytest.fixture
def rollout_cassette(
    request: pytest.FixtureRequest,
    rollout_cassette_config: dict[str, Any],
    rollout_cassette_dir: Path,
) -> Iterator[Session]:
    """Open the test's cassette, and give the session."""
    run, test = _run(request.config), request.node
    with run.cassette_of(test, rollout_cassette_config, rollout_cassette_dir) as session:
        yield session


@pytest.fixture(scope="session")
def use_rollout_cassette(
    request: pytest.FixtureRequest,
) -> Callable[..., AbstractContextManager[Session]]:
    """Give a function that opens a cassette, for fixtures of any scope.

    ``use_rollout_cassette(name, steps=None, mode="cache", **options)`` is a context manager that
    gives the session. The cassette is ``cassettes/<name>`` in pytest's root directory.
    """
    return _run(request.config).cassette


def _run(config: pytest.Config) -> Run:
    """Return the run's object; the first who asks for it brings the library in."""
    if _KEY not in config.stash:
        from rollout_cassettes.pytest_plugin.observer import Observer  # noqa: PLC0415
        from rollout_cassettes.pytest_plugin.run import Run  # noqa: PLC0415

        config.stash[_KEY] = Run(config)
        config.pluginmanager.register(Observer(config.stash[_KEY]), "rollout_cassettes_observer")
    return config.stash[_KEY]
