"""The command `ls`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollout_cassettes as rc
from tests.cli.program import DEMO, TERMINAL, invoke, loaded

SCRIPT = """\
import json, sys
from rollout_cassettes.cli import app

for command in sys.argv[1:]:
    app(json.loads(command), standalone_mode=False)
frameworks = "torch tensordict verl ray transformers tokenizers pandas pyarrow datasets".split()
print("loaded", sorted(sys.modules.keys() & set(frameworks)))
"""


def test_each_cassette_has_a_line(demo, record, texts, tmp_path):
    record("mine", texts)
    lines = invoke("ls", tmp_path).stdout.splitlines()
    heading, first, second = lines[0].split(), lines[2].split(), lines[3].split()
    assert heading == [
        "cassette",
        "steps",
        "rows",
        "tokens",
        "reward",
        "size",
        "age",
        "recorded",
        "by",
    ]
    assert first[:5] == [str(demo), "1-3", "48", "2,808", "1.405"]
    assert first[-3:] == ["verl_v1,", "verl", "0.9.1"]
    assert second[:5] == [str(tmp_path / "mine"), "1-2", "4", "10", "1.000"]


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal_and_cuts_no_figure(width, demo):
    """Only paths are broken, over lines."""
    text = invoke("ls", demo, width=width).stdout
    assert max(map(len, text.splitlines())) <= width
    for part in ("1-3", "48", "2,808", "1.405", "25.1 kB", "verl_v1", "verl 0.9.1"):
        assert part in text
    assert "…" not in text


def test_brief_has_no_columns_for_what_it_does_not_read(demo):
    """On 80 columns there is room for the path instead."""
    heading, _, line, *_ = invoke("ls", demo, "--brief", width=80).stdout.splitlines()
    assert heading.split() == ["cassette", "steps", "size", "age", "recorded", "by"]
    assert line.split()[1:4] == ["1-3", "25.1", "kB"]


def test_a_long_path_is_broken_between_its_parts(demo, tmp_path, monkeypatch):
    """At a terminal of 80 columns, before or after a separator and never inside a word."""
    monkeypatch.chdir(tmp_path)
    name = "gsm8k-qwen2.5-0.5b-grpo-colocate-async-seed42"
    path = Path("cassettes", "experiments", name)
    path.parent.mkdir(parents=True)
    demo.rename(path)
    for width in (80, 100, 120):
        lines = invoke("ls", "cassettes", width=width).stdout.splitlines()[2:]
        parts = [line.split("  ")[0].strip() for line in lines if not line.startswith(" ")]
        assert "".join(parts) == str(path)
        assert all(part.endswith(("/", "-", ".")) for part in parts[:-1])
        assert max(map(len, lines)) <= width
        assert "verl 0.9.1" in "".join(lines)


def test_machines_get_all_of_it(demo):
    (line,) = loaded("ls", demo)
    assert line["steps"] == [1, 2, 3]
    assert (line["rows"], line["tokens"]) == (48, 2808)
    assert line["reward"] == pytest.approx(1.40494791)
    assert line["versions"] == {"verl": ["0.9.1"]}
    assert line["nbytes"] == sum(file.stat().st_size for file in demo.iterdir())
    assert line["errors"] == []


def test_a_brief_list_reads_no_tensors(demo):
    """Rows, tokens and reward are left out; a damaged tensors file is not noticed."""
    (demo / "step-000002.safetensors.zst").write_bytes(b"")
    (line,) = loaded("ls", demo, "--brief")
    assert (line["rows"], line["tokens"], line["reward"]) == (None, None, None)
    assert line["steps"] == [1, 2, 3]


def test_a_damaged_cassette_is_listed_and_named(demo):
    """With what can be read of it, and exit status 1."""
    damaged = demo / "step-000002.safetensors.zst"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (line,) = loaded("ls", demo, status=1)
    assert line["rows"] == 32
    assert str(damaged) in line["errors"][0]
    done = invoke("ls", demo, status=1)
    assert str(damaged) in done.stderr
    assert "1-3" in done.stdout


def test_a_file_that_the_system_does_not_let_us_read_is_named(demo):
    """And the other cassettes are listed all the same."""
    unreadable = demo / "step-000002.safetensors.zst"
    unreadable.unlink()
    unreadable.mkdir()  # whoever runs this may read all files, but nobody a directory
    (line,) = loaded("ls", demo, status=1)
    assert line["steps"] == [1, 2, 3]
    assert "step-000002" in line["errors"][0]


def test_where_there_is_nothing_it_says_so(tmp_path):
    assert "There is no cassette at" in invoke("ls", tmp_path / "none", status=1).stderr
    assert "holds no recorded step" in invoke("ls", tmp_path, status=1).stderr


def test_without_a_path_it_lists_the_usual_directory(record, texts, tmp_path, monkeypatch):
    """`cassettes`, where sessions that name no path record."""
    record("cassettes/a", texts)
    monkeypatch.chdir(tmp_path)
    assert [line["path"] for line in loaded("ls")] == ["cassettes/a"]


def test_many_steps_are_counted(record):
    path = record("many", lambda step: [f"answer {step}"], steps=range(1, 40, 2))
    assert "20 of 39" in invoke("ls", path).stdout


def test_hostile_names_and_texts_do_not_reach_the_terminal(record, tmp_path):
    """Escape sequences are shown, and not obeyed; neither is markup."""
    record("[red]\x1b[31mname", lambda step: ["\x1b]0;title\x07 [bold]x\ud800"], steps=[1])
    (path,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    for arguments in (["ls"], ["show"], ["show", "--step", 1], ["show", "--step", 1, "--row", 0]):
        text = invoke(arguments[0], path, *arguments[1:]).stdout
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "␛]0;title␇ [bold]x\N{REPLACEMENT CHARACTER}" in text


def test_looking_imports_no_framework(tmp_path):
    """Neither does `import rollout_cassettes`: a list is there at once."""
    commands = [
        ["ls", DEMO],
        ["show", DEMO],
        ["show", DEMO, "--step", 1, "--row", 2],
        ["show", DEMO, "--text"],
        ["verify", DEMO],
        ["diff", DEMO, DEMO],
        ["export", DEMO, "--to", "jsonl", "--output", tmp_path / "out"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(json.dumps(command, default=str) for command in commands)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines()[-1] == "loaded []"
    assert (tmp_path / "out").exists()


def test_a_bar_is_shown_on_a_terminal_alone(demo):
    """On stderr."""
    assert "Reading" not in invoke("ls", demo).stderr
    done = invoke("ls", demo, "--json", environment=TERMINAL)
    assert "Reading" in done.stderr
    assert done.stdout.startswith("[")


@pytest.mark.parametrize(
    "command",
    [["ls"], ["verify"], ["show"], ["diff", DEMO], ["export", "--to", "jsonl", "--output", "o"]],
    ids=lambda command: command[0],
)
def test_the_bar_is_gone_when_the_result_is_printed(command, demo, tmp_path):
    """On a real terminal, where both are in one place."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(DEMO.parents[1])}
    name, *rest = map(str, command)
    with subprocess.Popen(
        [sys.executable, "-m", "rollout_cassettes", name, demo, *rest],
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=environment,
    ) as process:
        os.close(theirs)
        written = b""
        with contextlib.suppress(OSError):  # how Linux says that the terminal is closed
            while chunk := os.read(ours, 4096):
                written += chunk
    os.close(ours)
    assert process.returncode == 0
    bar, _, result = written.rpartition(b"\x1b[?25h")  # where the cursor is shown again
    assert b"ing " in bar
    assert b"demo" in result or b"step 1" in result
    assert b"\xe2\x94\x81\xe2\x94\x81" not in result


def test_colours_are_for_terminals(demo):
    plain = invoke("show", demo, "--step", 1, "--row", 0).stdout
    coloured = invoke("show", demo, "--step", 1, "--row", 0, environment=TERMINAL)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured.stdout


def test_odd_values_are_no_rows():
    """The cassette of all kinds of values can be listed."""
    lines = loaded("ls", DEMO.parent / "format-v1")
    assert [(line["rows"], len(line["steps"]), line["errors"]) for line in lines] == [
        (0, 5, [])
    ] * 2
    assert rc.open_cassette(lines[0]["path"]).steps == lines[0]["steps"]
