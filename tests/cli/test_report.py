"""The command ``report``: what it writes, what it says, and how it fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.cli.program import DEMO, invoke, loaded


def shown(path):
    """Return the figures that a report begins with."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="report">(.*?)</script>', text).group(1))


def test_a_report_holds_the_figures_of_all_steps(tmp_path):
    """verl's own: what its reward function said, and the versions of weights."""
    output = tmp_path / "report.html"
    assert "48 trajectories" in invoke("report", DEMO, "-o", output).stdout
    (cassette,) = shown(output)
    assert [step["name"] for step in cassette["steps"]] == ["1", "2", "3"]
    assert [step["pass_rate"] for step in cassette["steps"]] == [0, 0.0625, 0]
    assert [step["lag"]["high"] for step in cassette["steps"]] == [0, 0, 0]
    assert cassette["about"]["adapters"] == ["verl_v1"]


def test_it_tells_machines_what_it_wrote(tmp_path):
    output = tmp_path / "report.html"
    told = loaded("report", DEMO, DEMO, "-o", output)
    expected = {"output": str(output), "rows": 96, "nbytes": output.stat().st_size, "errors": []}
    assert told == expected
    assert len(shown(output)) == 2


def test_what_counts_can_be_said(tmp_path):
    output = tmp_path / "report.html"
    invoke("report", DEMO, "-o", output, "--pass-reward", 1, "--max-response-length", 30)
    steps = shown(output)[0]["steps"]
    assert all(0.5 < step["pass_rate"] <= 1 for step in steps)
    assert all(0.5 < step["truncated"] <= 1 for step in steps)


def test_what_is_there_already_stays(tmp_path):
    output = tmp_path / "report.html"
    output.write_text("mine")
    assert "is there already" in invoke("report", DEMO, "-o", output, status=1).stderr
    assert output.read_text() == "mine"
    invoke("report", DEMO, "-o", output, "--overwrite")
    done = invoke("report", DEMO, "-o", tmp_path, "--overwrite", status=1)
    assert "is not replaced" in done.stderr


def test_a_damaged_interaction_is_named_and_the_others_are_shown(demo, tmp_path):
    """On the page too; and the status says that something is wrong."""
    (demo / "step-000002.safetensors.zst").write_bytes(b"")
    output = tmp_path / "report.html"
    done = invoke("report", demo, "-o", output, status=1)
    assert "step-000002.safetensors.zst" in done.stderr
    (cassette,) = shown(output)
    assert [step["name"] for step in cassette["steps"]] == ["1", "3"]
    assert "step-000002.safetensors.zst" in cassette["wrong"][0]
    assert "\r" not in done.stderr  # no progress bar in a pipe


def test_a_file_that_can_not_be_read_is_named_and_the_others_are_shown(demo, tmp_path):
    """As what it is, and not as an output that can't be written to."""
    unreadable(demo / "step-000002.safetensors.zst")
    done = invoke("report", demo, "-o", tmp_path / "report.html", status=1)
    assert "step-000002.msgpack can't be read" in done.stderr
    assert [step["name"] for step in shown(tmp_path / "report.html")[0]["steps"]] == ["1", "3"]
    done = invoke("export", demo, "--to", "jsonl", "-o", tmp_path / "export", status=1)
    assert "Error: Is a directory: " in done.stderr


def unreadable(file):
    """Make a file one that the system won't read, for root neither."""
    file.unlink()
    file.mkdir()


def test_it_needs_neither_torch_nor_a_framework(tmp_path):
    script = f"""
import sys
from rollout_cassettes.cli import app
app(["report", {str(DEMO)!r}, "-o", {str(tmp_path / "report.html")!r}], standalone_mode=False)
heavy = ["torch", "tensordict", "verl", "ray", "transformers", "tokenizers"]
assert not [name for name in heavy if name in sys.modules]
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
