"""The demo: a real training, recorded and replayed, and how it is shown."""

from __future__ import annotations

import io
import json
import math
import signal
import sys
import tempfile
from dataclasses import replace

import pytest
from rich.console import Console

import rollout_cassettes as rc
from rollout_cassettes.demo import launcher
from rollout_cassettes.demo.launcher import DemoFailedError, Progress, run_demo
from rollout_cassettes.demo.report import render, reporter
from rollout_cassettes.demo.result import DemoResult, Requests, StepResult, differences

STEP = StepResult(
    step=1,
    reward=1.5,
    loss=-0.0625,
    live_rollout=2.0,
    replayed_rollout=0.05,
    live_step=3.0,
    replayed_step=1.0,
    nbytes=8600,
    differences=[],
)
RESULT = DemoResult(
    path="cassettes/demo",
    steps=[STEP, replace(STEP, step=2)],
    start_differences=[],
    recording="2 steps recorded",
    replay="2 steps replayed",
    live_requests=Requests(32, 8),
    replayed_requests=Requests(0, 8),
    live_seconds=60.0,
    replayed_seconds=50.0,
)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Let the demo's own directory be made in a place that a test can look at."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def child(temporary, monkeypatch):
    """Let the demo run a script in place of the trainings; it finds its directory in argv."""

    def command(directory, cassette, steps, *, overwrite):
        return [sys.executable, "-c", command.script, str(directory)]

    monkeypatch.setattr(launcher, "_command", command)
    monkeypatch.setattr(launcher, "FRAMEWORKS", ())
    return command


def shown(result, width=80):
    """Render a result into text."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    render(result, console)
    return console.file.getvalue()


@pytest.mark.verl
@pytest.mark.ray
@pytest.mark.slow
def test_a_replay_is_the_live_training_to_the_bit(tmp_path):
    """Two whole trainings by verl's own task runner; the engine gets no training request."""
    progress = []
    result = run_demo(tmp_path / "cassette", steps=2, report=progress.append)
    assert result.identical
    assert [step.step for step in result.steps] == [1, 2]
    assert rc.open_cassette(tmp_path / "cassette").steps == [1, 2]
    assert result.live_requests == Requests(training=32, validation=8)
    assert result.replayed_requests == Requests(training=0, validation=8)
    assert result.recording.startswith("2 steps recorded")
    assert result.replay.startswith("2 steps replayed, 0 generated live")
    assert progress[-1] == Progress("replaying", 2, 2)


def test_the_table_fits_eighty_columns():
    """Nothing is cut, nothing is wrapped."""
    text = shown(RESULT)
    assert "…" not in text
    row = "│    1 │ 1.5000 │ -0.062500 │ 2.000 s │  0.050 s │  8.6 kB │    yes    │"
    assert row in text
    assert "32 for training and 8 for validation live, 0 and 8 in the replay" in text
    assert "40 times faster" in text
    assert "Every logged metric and every weight is equal to the bit." in text
    assert "The cassette is in cassettes/demo" in text


def test_a_difference_is_named_and_fails_the_demo():
    """The step, and what differs in it."""
    result = replace(RESULT, steps=[STEP, replace(STEP, step=2, differences=["weights"])])
    assert not result.identical
    assert "The replay differs. step 2: weights" in shown(result)


def test_a_training_request_in_the_replay_fails_the_demo():
    """Equal numbers aren't enough: they could have been generated again."""
    result = replace(RESULT, replayed_requests=Requests(3, 8))
    assert not result.identical
    assert "3 training requests reached the engine" in shown(result)


def test_a_difference_before_training_fails_the_demo():
    """Validation of the initial weights is compared too."""
    result = replace(RESULT, start_differences=["val-core/toy/sums/acc/mean@1"])
    assert not result.identical
    assert "before training: val-core/toy/sums/acc/mean@1" in shown(result)


def test_a_result_survives_json():
    """What the command prints for machines has the verdict, too."""
    text = RESULT.to_json()
    assert DemoResult.from_json(text) == RESULT
    assert json.loads(text)["identical"] is True
    assert json.loads(text)["speed_up"] == pytest.approx(40)


def test_clocks_are_not_compared():
    """But any other metric is, as is one that only one of the runs has."""
    live = {"loss": 0.1, "timing_s/gen": 2.0, "actor/perf/mfu": 0.5, "perf/throughput": 1.0}
    replayed = {"loss": 0.1, "timing_s/gen": 0.1, "actor/perf/mfu": 0.4}
    assert differences(live, replayed, ("a", "a")) == []
    last_bit = math.nextafter(0.1, 1)
    assert differences(live, replayed | {"loss": last_bit}, ("a", "a")) == ["loss"]
    assert differences(live, replayed | {"loss": 0.2, "new": 1}, ("a", "b")) == [
        "loss",
        "new",
        "weights",
    ]
    assert differences(live, replayed, (None, None)) == ["weights"]


def test_an_existing_cassette_is_refused(tmp_path, child):
    """Recording over someone's cassette takes their word."""
    generate = rc.adapters.function("random:randint", step_of=lambda low, high: 1)
    with rc.record(path=tmp_path / "mine", adapters=[generate]):
        import random

        random.randint(1, 6)
    with pytest.raises(rc.StepExistsError, match="--overwrite"):
        run_demo(tmp_path / "mine")


def test_a_missing_extra_is_named(monkeypatch):
    """With the command that installs it."""
    monkeypatch.setattr(launcher, "FRAMEWORKS", ("verl_that_is_not_there",))
    with pytest.raises(rc.CassetteError, match=r"rollout_cassettes\[verl\]") as caught:
        run_demo("cassettes/demo")
    assert "verl_that_is_not_there" in str(caught.value)


def test_there_must_be_a_step():
    """Zero steps would prove nothing."""
    with pytest.raises(ValueError, match="at least one step"):
        run_demo("cassettes/demo", steps=0)


def test_a_failed_training_shows_the_end_of_its_output(tmp_path, child):
    """And says where the rest is, which stays there."""
    child.script = "print('lost in the noise'); raise SystemExit('the reason')"
    with pytest.raises(DemoFailedError, match="the reason") as caught:
        run_demo(tmp_path / "cassette")
    assert "exit status 1" in str(caught.value)
    assert "lost in the noise" in caught.value.log.read_text()


def test_an_interrupt_ends_the_trainings(temporary, child):
    """By an interrupt too, so that they stop their cluster; nothing is left on disk."""
    child.script = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try: pathlib.Path(sys.argv[1], 'live.jsonl').touch(); time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    pathlib.Path({str(temporary)!r}, 'interrupted').touch()"
    )

    def interrupt(progress):
        if list(temporary.glob("*/live.jsonl")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(temporary / "cassette", report=interrupt)
    assert [path.name for path in temporary.iterdir()] == ["interrupted"]


def test_interrupts_are_heeded_where_they_were_ignored(tmp_path, monkeypatch):
    """As in a job that a shell has put into the background."""
    from rollout_cassettes.demo import showcase

    heeded = []

    def run(*_):
        heeded.append(signal.getsignal(signal.SIGINT))
        return RESULT

    monkeypatch.setattr(showcase, "_run", run)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        showcase.main([str(tmp_path), "cassette", "1"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert heeded == [signal.default_int_handler]


def test_progress_is_told_in_lines_where_there_is_no_terminal(tmp_path, child):
    """One line for each change, none for a look that saw nothing new."""
    told = tmp_path / "told"
    told.touch()
    # Goes on when the change before it has been told, however long that takes.
    child.script = (
        "import pathlib, signal, sys, time\n"
        "signal.alarm(300)\n"
        f"root, told = pathlib.Path(sys.argv[1]), pathlib.Path({str(told)!r})\n"
        "def wait(lines):\n"
        "    while told.read_text().count('\\n') < lines: time.sleep(0.01)\n"
        "for lines, name in ((0, 'live.jsonl'), (2, 'replayed.jsonl')):\n"
        "    wait(lines); (root / name).touch()\n"
        "    wait(lines + 1); (root / name).write_text('0\\n1\\n2\\n')\n"
        "wait(4)\n"
        f"(root / 'result.json').write_text({RESULT.to_json()!r})"
    )
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    with reporter(console) as report:

        def look_twice(progress):
            report(progress)
            report(progress)
            told.write_text(console.file.getvalue())

        assert run_demo(tmp_path / "cassette", steps=2, report=look_twice) == RESULT
    assert console.file.getvalue().splitlines() == [
        "Starting Ray and verl",
        "Training live, recording: step 2 of 2",
        "Starting verl again",
        "Training again from the cassette: step 2 of 2",
    ]


def test_progress_is_shown_in_bars_on_a_terminal():
    """A bar for each training; the first is full when the second begins."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with reporter(console) as report:
        report(Progress("recording", None, 3))
        report(Progress("recording", 1, 3))
        report(Progress("replaying", 2, 3))
    text = console.file.getvalue()
    assert "Starting Ray and verl" in text
    assert "0/?" in text
    assert "Training live, recording" in text
    assert "3/3" in text
    assert "2/3" in text
