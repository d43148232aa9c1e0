"""Starts the demo's trainings in a process of their own and follows them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import rollout_cassettes as rc
from rollout_cassettes.adapters.verl.installed import require_installed
from rollout_cassettes.demo.directory import DemoDirectory
from rollout_cassettes.demo.environment import environment
from rollout_cassettes.demo.result import DemoResult
from rollout_cassettes.errors import CassetteError, CassetteNotFoundError, StepExistsError

__all__ = ["DemoFailedError", "Progress", "run_demo"]

FRAMEWORKS = ("verl", "transfer_queue", "ray", "transformers")
POLL_SECONDS = 0.2
GRACE_SECONDS = 30.0
LOG_TAIL_LINES = 30


class DemoFailedError(CassetteError):
    """A training of the demo ended with an error.

    Attributes:
        log: The file with all output of the training.
    """

    log: Path


class Progress(NamedTuple):
    """How far the demo is.

    Attributes:
        phase: What is going on.
        step: The steps done in this phase; None while its processes start.
        steps: The steps to do in this phase.
    """

    phase: Literal["recording", "replaying"]
    step: int | None
    steps: int


def run_demo(
    path: str | os.PathLike[str],
    steps: int = 3,
    *,
    overwrite: bool = False,
    report: Callable[[Progress], object] = lambda progress: None,  # noqa: ARG005
) -> DemoResult:
    """Train with verl on this machine's CPU, recorded; then train again from the cassette.

    Nothing is downloaded. Takes about two minutes on two cores, most of it imports in the dozen
    processes that verl starts.

    Args:
        path: The cassette's directory.
        steps: How many steps to train.
        overwrite: Whether a cassette that is there already may be replaced.
        report: Called with the progress, several times a second.

    Raises:
        ValueError: If there is no step to take.
        CassetteError: If verl isn't installed.
        StepExistsError: If there is a cassette already.
        DemoFailedError: If a training fails.
    """
    if steps < 1:
        raise ValueError(f"the demo needs at least one step to train; got {steps}")
    require_installed(FRAMEWORKS, "The demo trains with verl")
    cassette = Path(path).resolve()
    if not overwrite:
        _refuse_existing(cassette)
    with _directory() as directory:
        command = _command(directory.root, cassette, steps, overwrite=overwrite)
        with _started(command, directory) as process:
            while process.poll() is None:
                report(_progress(directory, steps))
                time.sleep(POLL_SECONDS)
        report(_progress(directory, steps))
        if process.returncode != 0:
            raise _failure(directory.output, process.returncode)
        return DemoResult.from_json(directory.result.read_text())


@contextmanager
def _directory() -> Iterator[DemoDirectory]:
    """Make a temporary directory; keep it where a training failed, for its output."""
    directory = DemoDirectory(Path(tempfile.mkdtemp(prefix="rollout-cassettes-demo-")))
    keep = False
    try:
        yield directory
    except DemoFailedError:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(directory.root, ignore_errors=True)


def _refuse_existing(cassette: Path) -> None:
    try:
        steps = list(rc.open_cassette(cassette).steps)
    except CassetteNotFoundError:
        return
    if steps:
        raise StepExistsError(
            f"There is a cassette already at {cassette}.",
            fixes=["Pass --overwrite to replace it.", "Choose another directory with --path."],
            path=cassette,
            steps=steps,
        )


def _command(directory: Path, cassette: Path, steps: int, *, overwrite: bool) -> list[str]:
    arguments = [str(directory), str(cassette), str(steps)]
    mode = "overwrite" if overwrite else "error"
    module = "rollout_cassettes.demo.showcase"
    return [sys.executable, "-m", module, *arguments, "--on-existing", mode]


@contextmanager
def _started(command: list[str], directory: DemoDirectory) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with its output in a file; end it, and the cluster it started, in any case."""
    with directory.output.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own module, with arguments in a list
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment(directory.root)},
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            # An interrupt lets it stop its cluster; being killed would leave that behind.
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _progress(directory: DemoDirectory, steps: int) -> Progress:
    """Read from verl's metrics how far the trainings are."""
    if directory.replayed_log.exists():
        return Progress("replaying", _steps_logged(directory.replayed_log), steps)
    return Progress("recording", _steps_logged(directory.live_log), steps)


def _steps_logged(log: Path) -> int | None:
    """Count a log's steps; its first line is the validation before training, None before that."""
    lines = log.read_bytes().splitlines() if log.exists() else []
    return len(lines) - 1 if lines else None


def _failure(log: Path, status: int) -> DemoFailedError:
    lines = log.read_text(errors="replace").splitlines()
    tail = "\n".join(f"    {line}" for line in lines[-LOG_TAIL_LINES:])
    return DemoFailedError(
        f"The demo's training ended with exit status {status}. The end of {log}:\n{tail}",
        log=log,
    )
