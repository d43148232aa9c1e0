"""The command `run`, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rollout_cassettes.configuration import MODES, RUN_VARIABLE, options_of

SHOW = [sys.executable, "-c", f"import os; print(os.environ['{RUN_VARIABLE}'])"]


def run(*arguments, **environment):
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rollout_cassettes", "run", *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def shown(*arguments):
    """Give what the command finds in its environment."""
    done = run(*arguments, "--", *SHOW)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_gets_the_options_with_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--steps", "1-3", "--compression", "none", "--metadata", "a=b", "--metadata", "c=")
    assert shown("--record", "cassettes/x", *options) == {
        "mode": "record",
        "path": str(tmp_path / "cassettes/x"),
        "steps": "1-3",
        "compression": None,
        "metadata": {"a": "b", "c": ""},
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--mode", "repeat", "--on-miss", "record"],
            {"replay_mode": "repeat", "on_miss": "record"},
        ),
        (["--no-restore-rng", "--device", "cpu"], {"restore_rng": False, "device": "cpu"}),
        (["--phases", "train,val"], {"phases": ["train", "val"]}),
    ],
)
def test_a_replay_has_the_options_of_replay(options, expected):
    assert shown("--replay", "/x", *options) == {"mode": "replay", "path": "/x", **expected}


def test_use_has_the_record_modes():
    assert shown("--use", "/x", "--record-mode", "none") == {
        "mode": "use",
        "path": "/x",
        "record_mode": "none",
    }


def test_help_lists_every_option_with_its_words():
    text = run("--help").stdout
    for mode in MODES:
        assert f"--{mode} " in text
        for option in options_of(mode).values():
            name = "mode" if option.name == "replay_mode" else option.name
            assert name == "path" or f"--{name.replace('_', '-')} " in text
            assert "|".join(option.words) in text


def test_the_exit_status_is_the_commands():
    assert run("--record", "x", "--", "sh", "-c", "exit 7").returncode == 7


def test_options_after_the_command_are_the_commands():
    """With or without the dashes between them."""
    done = run("--record", "x", "sh", "-c", "echo $1 $2", "sh", "--steps", "3")
    assert done.stdout == "--steps 3\n"


def test_signals_reach_the_command():
    """It is the same process."""
    arguments = ["run", "--record", "x", "--", "sh", "-c", "echo $$; exec sleep 600"]
    program = [sys.executable, "-m", "rollout_cassettes", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert int(process.stdout.readline()) == process.pid
        process.terminate()
        assert process.wait(300) == -15


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "COMMAND"),
        (["--replay", "x"], "COMMAND"),
        (["true"], "--record, --replay, --use"),
        (["--record", "x", "--replay", "y", "true"], "--record, --replay, --use"),
        (["--record", "x", "--on-miss", "error", "true"], "--on-miss doesn't go with --record"),
        (["--replay", "x", "--on-miss", "recrod", "true"], "'generate'"),
        (["--replay", "x", "--steps", "3-1", "true"], "backwards"),
        (["--replay", "x", "--stps", "3", "true"], "--stps"),
        (["--record", "x", "--metadata", "abc", "true"], "NAME=VALUE"),
    ],
)
def test_what_is_wrong_is_a_usage_error(arguments, told):
    """Before the command is started, and without a traceback."""
    done = run(*arguments)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [("no-such-command", 127, "there is no command"), ("/etc/passwd", 126, "can't be run")],
)
def test_a_command_that_can_not_be_run_has_the_status_that_shells_give(command, status, told):
    done = run("--record", "x", "--", command)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert told in done.stderr


@pytest.mark.parametrize(
    "allowed", ["none", "others", "others, rollout_cassettes", "auto", " AUTO"]
)
def test_it_refuses_to_run_where_verl_would_not_load_the_plugin(allowed):
    """The training would go on, and nothing would be recorded."""
    done = run("--record", "x", "--", "echo", "ran", VERL_USE_EXTERNAL_PLUGINS=allowed)
    if allowed in ("none", "others"):
        assert done.returncode == 1
        assert f"VERL_USE_EXTERNAL_PLUGINS={allowed}" in done.stderr
    else:
        assert done.stdout == "ran\n"


@pytest.mark.parametrize(
    ("source", "status"),
    [("", 1), ("_discovered = _entry_points(group='verl.plugins')", 0)],
    ids=["verl 0.8.0", "verl 0.9.1"],
)
def test_it_refuses_to_run_where_verl_knows_no_plugins(tmp_path, source, status):
    """The training would go on, and nothing would be recorded."""
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "__init__.py").write_text(source)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("--record", "x", "--", "echo", "ran", PYTHONPATH=path)
    assert done.returncode == status
    assert (done.stdout == "ran\n") is (status == 0)
    assert ("loads no plugins" in done.stderr) is (status == 1)
