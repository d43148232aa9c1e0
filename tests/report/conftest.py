"""Runs, reports on them, and a browser to look at these."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.program import invoke
from tests.report.browser import Browser, missing
from tests.report.runs import write_run, write_tokenizer

SHOTS = "ROLLOUT_CASSETTES_SHOTS"
"""The environment variable that names the directory in which screenshots stay."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A directory with two runs, `one` with validation and `two`, and a tokenizer."""
    pytest.importorskip("tokenizers")
    directory = tmp_path_factory.mktemp("runs")
    write_run(directory / "one", validate=True)
    write_run(directory / "two", seed=1, steps=5)
    write_tokenizer(directory / "tokenizer")
    return directory


@pytest.fixture(scope="session")
def reports(runs):
    """Reports: `one.html`, `both.html`, and `plain.html` without a tokenizer."""
    tokenizer = ("--tokenizer", runs / "tokenizer")
    invoke("report", runs / "one", "-o", runs / "one.html", *tokenizer)
    invoke("report", runs / "one", runs / "two", "-o", runs / "both.html", *tokenizer)
    invoke("report", runs / "one", "-o", runs / "plain.html")
    return runs


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests: it takes seconds to start."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium):
    """The browser, whose console must have said nothing at the end."""
    chromium.look(1280, "light")
    chromium.errors()
    yield chromium
    assert chromium.errors() == []


@pytest.fixture(scope="session")
def shots(tmp_path_factory):
    """Where screenshots go."""
    named = os.environ.get(SHOTS)
    return Path(named) if named else tmp_path_factory.mktemp("shots")
