"""What the plugin knows of a test run: the only state that it has."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from rollout_cassettes.errors import (
    CassetteCorruptError,
    CassetteError,
    CassetteNotFoundError,
    RequestMismatchError,
    StepNotRecordedError,
    UnplayedError,
)
from rollout_cassettes.pytest_plugin import settings
from rollout_cassettes.pytest_plugin.blocking import Blocker, Bystander
from rollout_cassettes.pytest_plugin.orphans import NODE_ID, SHARED, Suite
from rollout_cassettes.pytest_plugin.place import (
    directory_name,
    module_directory,
    name_in_module,
    node_id,
)
from rollout_cassettes.pytest_plugin.report import Report, Use
from rollout_cassettes.session import Session, use_cassette
from rollout_cassettes.session.use import records

FIXTURE = "rollout_cassette"
_REPLACING = ("all", "rewrite")


class _TestFailed(Exception):  # noqa: N818 - it is not raised to anyone
    """Ends the block of a test that failed, so that what it recorded is discarded."""


class Run:
    """One run of pytest, or of one of xdist's workers.

    Args:
        config: pytest's.

    Attributes:
        report: Which cassettes were used, and how.
        suite: The tests that there are, as far as they use cassettes.
        blocker: What refuses live rollouts; None while they may go live.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.report = Report(config.rootpath)
        self.suite = Suite(config)
        self.blocker: Blocker | None = None
        self._config = config
        self._sessions: dict[str, Session] = {}
        self._verdicts: dict[str, bool] = {}
        self._failures = 0
        self._named: defaultdict[Path, set[str]] = defaultdict(set)
        self._recorded_by: dict[Path, str] = {}

    # ---- before the tests

    def block(self) -> None:
        """Block rollouts of the adapters that are known by now, if so asked.

        This is to be opened before any session, so that it is asked after all others.
        """
        self.unblock()
        if self._config.option.block_rollouts or self._config.getini("block_rollouts"):
            self.blocker = Blocker()
            try:
                self.blocker.__enter__()
            except CassetteError as error:  # a framework that no adapter knows in this release
                raise pytest.UsageError(str(error)) from None

    def unblock(self) -> None:
        """Let rollouts go live again."""
        if self.blocker is not None:
            self.blocker.__exit__(None, None, None)
            self.blocker = None

    def expect(self, item: pytest.Item) -> None:
        """Take note of a test that is marked or asks for the fixture, and let it have the fixture."""
        if hasattr(item, "_fixtureinfo"):  # functions, and doctests
            _request_fixture(item)
        with suppress(CassetteError):  # the fixture will raise it, where the test can be told
            given = settings.marked(item)
            path = self.directory_of(item.path) / _name(item, given)
            self.suite.expect(item, path)
            if given.get("name") is not None:
                self._named[path].add(node_id(item))

    def directory_of(self, test_file: Path) -> Path:
        """Return where the cassettes of a test file are, if no fixture says otherwise."""
        return module_directory(test_file, self._config.getini("rollout_cassette_dir"))

    # ---- opening cassettes

    @contextmanager
    def cassette_of(
        self, item: pytest.Item, fixture: Mapping[str, Any], directory: Path
    ) -> Iterator[Session]:
        """Open a test's cassette, until the test was torn down.

        Args:
            item: The test.
            fixture: What ``rollout_cassette_config`` gives.
            directory: What ``rollout_cassette_dir`` gives.

        Raises:
            CassetteNotFoundError: If it is to be replayed, and is not there.
            CassetteError: If an option is unknown, or the cassette can't be recorded in this run.
        """
        test = node_id(item)
        with suppress(_TestFailed), ExitStack() as block:
            try:
                opened = self._cassette_of(item, fixture, directory)
                self._sessions[test] = session = block.enter_context(opened)
            except CassetteError as error:  # no line of code is to blame: the message says it all
                raise pytest.fail.Exception(str(error), pytrace=False) from None
            block.callback(self._sessions.pop, test)  # it holds what it has read
            yield session
            if not self._verdicts.pop(test, False):
                raise _TestFailed

    def _cassette_of(
        self, item: pytest.Item, fixture: Mapping[str, Any], directory: Path
    ) -> AbstractContextManager[Session]:
        given = settings.marked(item)
        options = settings.resolve(self._config, given, fixture)
        path = Path(directory) / _name(item, options)
        shared = "name" in options and ("name" not in given or len(self._named[path]) > 1)
        test = node_id(item)
        return self._opened(path, test, options, {NODE_ID: test}, shared=shared)

    @contextmanager
    def cassette(
        self, name: str, steps: Any = None, mode: Any = "cache", **options: Any
    ) -> Iterator[Session]:
        """Open a cassette for a fixture.

        Args:
            name: What it is called among the cassettes of the root directory; or an absolute path.
            steps: The steps to record or replay.
            mode: How to replay, ``"cache"`` or ``"repeat"``.
            options: Further options of :class:`use_cassette`.

        Raises:
            CassetteNotFoundError: If it is to be replayed, and is not there.
            CassetteError: If an option is unknown, or the cassette can't be recorded in this run.
        """
        given = {"name": name, "steps": steps, "mode": mode, **options}
        resolved = settings.resolve(self._config, given, {})
        path = self._config.rootpath / self._config.getini("rollout_cassette_dir") / name
        failures = self._failures
        with (
            suppress(_TestFailed),
            self._opened(path, None, resolved, {SHARED: str(name)}, shared=True) as session,
        ):
            yield session
            if self._failures > failures:
                raise _TestFailed

    @contextmanager
    def _opened(
        self,
        path: Path,
        test: str | None,
        options: dict[str, Any],
        metadata: dict[str, str],
        *,
        shared: bool,
    ) -> Iterator[Session]:
        """Open a cassette, and take note of what came of it.

        Args:
            path: Its directory.
            test: The test; None for a fixture.
            options: What applies to it.
            metadata: Whose it is.
            shared: Whether several tests may have it open.
        """
        if self._config.option.disable_rollout_cassettes:
            with Bystander(path) as bystander:
                yield bystander
            return
        self.suite.used.add(path)
        if records(options["record_mode"], path):
            self._refuse_shared(path, test, options["record_mode"], shared=shared)
        opened = _checked(path, options, metadata)
        with ExitStack() as after, ExitStack() as block:
            try:
                session = block.enter_context(opened)
            except CassetteNotFoundError as error:
                raise self._not_found(error, test) from None
            after.push(lambda kind, _error, _traceback: self._note(path, test, session, kind))
            yield session

    def _refuse_shared(self, path: Path, test: str | None, mode: str, *, shared: bool) -> None:
        """Refuse a recording that another test would spoil.

        Raises:
            CassetteError: If tests in several processes may record it, or another test did in this run
                and would lose its recording.
        """
        worker: dict[str, Any] = getattr(self._config, "workerinput", {})
        if shared and worker.get("workercount", 1) > 1:
            raise CassetteError(
                f"{path} is shared: tests in several processes of pytest-xdist would record it at once.",
                fixes=[
                    f"Record it in one process: {self._command(test, mode)} -n 0",
                    "Give each test a cassette of its own: leave name= out.",
                ],
            )
        other = self._recorded_by.get(path, test)
        if other != test and mode in _REPLACING:
            raise CassetteError(
                f"{path} was recorded in this run already, by {other}: {mode} would replace that.",
                fixes=[
                    "Give each test a cassette of its own: leave name= out.",
                    f"Delete it, and let the first test record it: {self._command(None, 'once')}",
                ],
            )

    def _not_found(self, error: CassetteNotFoundError, test: str | None) -> CassetteNotFoundError:
        """Return the error for a missing cassette, with the command that records it."""
        near = [fix for fix in error.fixes if fix.startswith("Did you mean")]
        command = f"Record it: {self._command(test, 'once')}"
        unmarked = [] if test is None else ["If the test makes no rollout, it needs no mark."]
        fixes = [command, *near, *unmarked]
        return CassetteNotFoundError(error.what, fixes=fixes, path=error.path)

    def _command(self, test: str | None, mode: str) -> str:
        """Return the command that records a test's cassette, or all of them."""
        option = f"--rollout-record-mode={mode}"
        if test is None:
            return f"pytest {option}"
        file, colons, names = test.partition("::")
        here = os.path.relpath(self._config.rootpath / file, self._config.invocation_params.dir)
        return f"pytest {shlex.quote(here + colons + names)} {option}"

    # ---- after the tests

    def judge(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Take note of how a test went, or a part of it: what it recorded is kept if all passed."""
        test = node_id(item)
        if report.when == "call" and test in self._sessions:
            self._verdicts[test] = report.passed and self._verdicts.get(test, True)
        self._failures += report.failed
        self.suite.is_complete &= report.passed

    def forget_refusals(self) -> None:
        """Begin with a new test."""
        if self.blocker is not None:
            self.blocker.refusal = None

    def refusal(self, item: pytest.Item) -> CassetteError | None:
        """Return the first error that a rollout of a test was refused with, if there was one."""
        own = self._sessions.get(node_id(item))
        sessions = [session for session in (own, self.blocker) if session is not None]
        return next((each.refusal for each in sessions if each.refusal is not None), None)

    def remedy(self, item: pytest.Item, error: BaseException) -> str | None:
        """Return how to record a test again that is not what was recorded; None for other errors."""
        if isinstance(error, StepNotRecordedError):
            return f"Record what is missing: {self._command(node_id(item), 'new_steps')}"
        if isinstance(error, (RequestMismatchError, UnplayedError, CassetteCorruptError)):
            return f"Record it again: {self._command(node_id(item), 'rewrite')}"
        return None

    def _note(self, path: Path, test: str | None, session: Session, failed: object) -> None:
        summary = session.summary()
        if summary.recorded and failed is None and not (summary.faults or summary.omissions):
            self._recorded_by[path] = test or SHARED
        self.report.uses.append(Use.of(path, test, summary, failed=failed is not None))


def _checked(path: Path, options: Mapping[str, Any], metadata: Mapping[str, str]) -> use_cassette:
    """Return what opens a cassette.

    Raises:
        CassetteError: If an option has a value that it doesn't take.
    """
    chosen = {name: value for name, value in options.items() if name != "name"}
    try:
        chosen["metadata"] = {**(chosen.get("metadata") or {}), **metadata}
        return use_cassette(path, **chosen, on_failure="discard")
    except (TypeError, ValueError) as error:
        raise CassetteError(
            f"The cassette {path} can't be opened as it is asked for: {error}."
        ) from error


def _name(item: pytest.Item, options: Mapping[str, Any]) -> str | Path:
    """Return the name of a test's cassette: the given one as it is."""
    name: str | Path | None = options.get("name")
    return directory_name(name_in_module(item)) if name is None else name


def _request_fixture(item: Any) -> None:
    """Let a test have the fixture before its others of the same scope: they may make rollouts."""
    names = [name for name in item.fixturenames if name != FIXTURE]
    known = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - pytest 9 has no other way to ask
    scopes = [known[name][-1].scope if known.get(name) else None for name in names]
    place = scopes.index("function") if "function" in scopes else len(names)
    item.fixturenames = [*names[:place], FIXTURE, *names[place:]]
