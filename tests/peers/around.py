"""Pytest plugin: has rollout_cassettes around tests that know nothing of it.

`python -m pytest -p around --around=recorder --around-report=FILE ...`, with this directory on
PYTHONPATH. What happened is written to FILE, as JSON: the outcome of each test, and what proves that
the tests did run with what they were to have around them.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.patching import unseen

#: What may be around the tests.
WAYS = ("plain", "recorder", "recorder per test", "plugin idle")

PLUGIN = "rollout_cassettes.verl_plugin"

#: `tq.init()` of TransferQueue 0.1.11 starts three actors of one CPU each, and waits for ever for
#: those that don't fit.
LOGICAL_CPUS = 16


def pytest_addoption(parser):
    """Add the two options."""
    parser.addoption("--around", choices=WAYS, default="plain", help="what is around the tests")
    parser.addoption("--around-report", type=Path, required=True, help="where to say what happened")


def pytest_configure(config):
    """Open the session that is to be around all tests; nothing of verl is imported yet."""
    around = Around(config.getoption("--around"), config.getoption("--around-report"))
    config.pluginmanager.register(around, "around-tests")
    if around.way == "recorder":
        around.open("cassette")


@pytest.fixture(scope="module", autouse=True)
def ray_for_transfer_queue(request):
    """Start Ray with enough logical CPUs for test modules that start TransferQueue."""
    if not hasattr(request.module, "tq"):
        yield
        return
    import ray

    memory = 256 * 2**20  # bytes
    ray.init(
        num_cpus=LOGICAL_CPUS,
        include_dashboard=False,
        object_store_memory=memory,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


class Around:
    """What is around the tests, and what came of them.

    Args:
        way: One of WAYS.
        report: The file to write at the end; cassettes go beside it.
    """

    def __init__(self, way, report):
        self.way = way
        self._report = report
        self._block = ExitStack()
        self._session = None
        self._outcomes = {}
        self._details = {}
        self._under_session = 0
        self._patched = set()

    def open(self, name):
        """Open a session."""
        self._session = rc.record(path=self._report.parent / name)
        self._block.enter_context(self._session)

    def close(self):
        """Close it."""
        points = [each for each in self._session._entry_points() if each.framework == "verl"]
        self._patched |= {each.target for each in points} - {each.target for each in unseen(points)}
        self._block.close()
        self._session = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Open a session around a test and its fixtures, where each is to have its own."""
        if self.way != "recorder per test":
            return (yield)
        self.open(f"cassette-{len(self._outcomes)}")
        try:
            return (yield)
        finally:
            self.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Count the tests that run while a session is open."""
        self._under_session += self._session is not None and self._session._state == "open"
        return (yield)

    def pytest_runtest_logreport(self, report):
        """Keep the worst outcome of a test's phases."""
        if report.outcome == "passed" and report.when != "call":
            return
        self._outcomes[report.nodeid] = report.outcome
        if report.failed:
            self._details[report.nodeid] = report.longreprtext

    def pytest_collectreport(self, report):
        """Count a module that can't be imported as a failure."""
        if report.failed:
            self._outcomes[report.nodeid] = "failed"
            self._details[report.nodeid] = report.longreprtext

    def pytest_unconfigure(self):
        """Close the session, and say what happened."""
        if self._session is not None:
            self.close()
        verl = sys.modules.get("verl")
        facts = {
            "outcomes": self._outcomes,
            "details": self._details,
            "under_session": self._under_session,
            "patched": sorted(self._patched),
            "plugin": PLUGIN in sys.modules,
            "verl": str(Path(verl.__file__).parent) if verl else None,
            "version": importlib.metadata.version("verl") if verl else None,
        }
        self._report.write_text(json.dumps(facts), encoding="utf-8")
