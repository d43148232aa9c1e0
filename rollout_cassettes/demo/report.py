"""How the demo shows itself: progress while it runs, and a table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress as bars
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rollout_cassettes.demo.launcher import Progress
from rollout_cassettes.demo.result import DemoResult, StepResult
from rollout_cassettes.display.amounts import readable_bytes, readable_seconds

__all__ = ["render", "reporter"]

STARTING = {
    "recording": "Starting Ray and verl",
    "replaying": "Starting verl again",
}
DESCRIPTIONS = {
    "recording": "Training live, recording",
    "replaying": "Training again from the cassette",
}


@contextmanager
def reporter(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Show progress: bars on a terminal, a line for each change elsewhere.

    Args:
        console: Where to.

    Yields:
        What `run_demo` takes as `report`.
    """
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console) as display:
        yield _Bars(display)


class _Lines:
    """Writes a line whenever something changed.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if progress == self._last:
            return
        self._last = progress
        text = _description(progress)
        if progress.step is not None:
            text += f": step {progress.step} of {progress.steps}"
        self._console.print(text, highlight=False)


class _Bars:
    """Keeps a bar for each phase; it pulses while the phase's processes start.

    Args:
        display: Rich's live display.
    """

    def __init__(self, display: bars.Progress) -> None:
        self._display = display
        self._tasks: dict[str, bars.TaskID] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.phase not in self._tasks:
            self._finish(progress.steps)
            task = self._display.add_task(_description(progress), total=None)
            self._tasks[progress.phase] = task
        self._display.update(
            self._tasks[progress.phase],
            description=_description(progress),
            total=None if progress.step is None else progress.steps,
            completed=progress.step,
        )

    def _finish(self, steps: int) -> None:
        """Fill the bars of earlier phases: what is over is done."""
        for task in self._tasks.values():
            self._display.update(task, total=steps, completed=steps)


def _description(progress: Progress) -> str:
    """Say what is going on; starting takes most of the time, and there is no step to count then."""
    return (STARTING if progress.step is None else DESCRIPTIONS)[progress.phase]


def render(result: DemoResult, console: Console) -> None:
    """Print the table of steps, and what there is to say below it.

    Args:
        result: What the demo found out.
        console: Where to.
    """
    console.print(_table(result))
    for line in _lines(result):
        console.print(line, highlight=False, soft_wrap=True)


def _table(result: DemoResult) -> Table:
    table = Table(title="verl GRPO on a CPU, recorded and replayed")
    for heading in ("step", "reward", "loss", "live", "replayed", "on disk"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("identical", justify="center")
    for step in result.steps:
        table.add_row(*_row(step))
    return table


def _row(step: StepResult) -> list[str]:
    return [
        str(step.step),
        f"{step.reward:.4f}",
        f"{step.loss:+.6f}",
        f"{step.live_rollout:.3f} s",
        f"{step.replayed_rollout:.3f} s",
        readable_bytes(step.nbytes),
        "[green]yes[/]" if step.identical else "[red]no[/]",
    ]


def _lines(result: DemoResult) -> Iterator[str]:
    live, replayed = result.live_requests, result.replayed_requests
    yield f"Recording: {escape(result.recording)}"
    yield f"Replay: {escape(result.replay)}"
    yield (
        f"Requests to the engine: {live.training} for training and {live.validation} for "
        f"validation live, {replayed.training} and {replayed.validation} in the replay"
    )
    yield (
        f"Rollouts: {_total(result, 'live_rollout')} live, "
        f"{_total(result, 'replayed_rollout')} replayed: {result.speed_up:.0f} times faster"
    )
    yield (
        f"Whole steps: {_total(result, 'live_step')} and {_total(result, 'replayed_step')}; "
        f"with starting all processes: {readable_seconds(result.live_seconds)} and "
        f"{readable_seconds(result.replayed_seconds)}"
    )
    yield _verdict(result)
    yield f"The cassette is in {escape(result.path)}"


def _total(result: DemoResult, name: str) -> str:
    return readable_seconds(sum(getattr(step, name) for step in result.steps))


def _verdict(result: DemoResult) -> str:
    if result.identical:
        return "[green]Every logged metric and every weight is equal to the bit.[/]"
    return f"[red]The replay differs.[/] {escape('; '.join(_findings(result)))}"


def _findings(result: DemoResult) -> Iterator[str]:
    if result.start_differences:
        yield f"before training: {', '.join(result.start_differences)}"
    for step in result.steps:
        if step.differences:
            yield f"step {step.step}: {', '.join(step.differences)}"
    if result.replayed_requests.training:
        yield f"{result.replayed_requests.training} training requests reached the engine"
