"""The hooks of runs that use cassettes: they only tell the run's object what happened."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.pytest_plugin.run import Run

_OUTPUT = "rollout_cassettes"
"""Under which name a worker of pytest-xdist sends what it has to tell."""

_LIBRARY = Path(__file__).parents[1]


class Observer:
    """A plugin that is registered with the first use of a cassette.

    Args:
        run: What is told.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_sessionstart(self) -> None:
        """Block rollouts while test modules are imported, if so asked."""
        self._run.block()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Take note of the files that were collected."""
        self._run.suite.files.add(item.path)

    def pytest_collection_finish(self) -> None:
        """Block rollouts of adapters that test modules have registered, too."""
        self._run.block()

    def pytest_deselected(self) -> None:
        """Take note that not all tests run."""
        self._run.suite.is_complete = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Begin with a new test."""
        self._run.forget_refusals()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that swallowed what it was refused; show errors where the test made the call."""
        __tracebackhide__ = True
        try:
            result = yield
        except CassetteError as error:
            if item.config.option.fulltrace:
                raise
            raise error.with_traceback(_outside(error.__traceback__)) from error.__cause__
        refusal = self._run.refusal(item)
        if refusal is not None:
            pytest.fail(
                f"The test passed, but a rollout of it was refused: {refusal}", pytrace=False
            )
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Tell how a test ended, before it is torn down."""
        report = yield
        self._run.judge(item, report)
        remedy = None if call.excinfo is None else self._run.remedy(item, call.excinfo.value)
        if report.failed and remedy is not None:
            report.sections.append(("rollout cassette", remedy))
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let rollouts go live again; send what is known to where xdist was started."""
        self._run.unblock()
        if session.shouldstop or session.shouldfail:
            self._run.suite.is_complete = False
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = {**self._run.report.to_plain(), **self._run.suite.to_plain()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker of pytest-xdist tells at its end."""
        told = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if told is not None:
            self._run.report.merge(told)
        self._run.suite.merge(told)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Print the report, if so asked."""
        if not config.option.rollout_cassettes_report:
            return
        lines: Sequence[str] = [*self._run.report.lines(), *self._run.suite.lines()]
        terminalreporter.section("rollout cassettes")
        for line in lines:
            terminalreporter.line(line)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this library."""
    if traceback is None:
        return None
    inner = _outside(traceback.tb_next)
    if Path(traceback.tb_frame.f_code.co_filename).is_relative_to(_LIBRARY):
        return inner
    return TracebackType(inner, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
