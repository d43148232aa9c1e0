"""The command `prune`."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

import rollout_cassettes as rc
from tests.cli.program import invoke, loaded


@pytest.fixture
def aged(record):
    """A cassette of five steps, recorded 50, 40, 30, 20 and 10 days ago."""
    path = record("aged", lambda step: [f"answer {step}"], steps=range(1, 6))
    for interaction in rc.open_cassette(path):
        then = datetime.now(timezone.utc) - timedelta(days=60 - 10 * interaction.step, hours=1)
        manifest = dataclasses.replace(interaction.manifest, recorded_at=then.isoformat())
        interaction.path.write_bytes(manifest.to_bytes())
    return path


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--keep-last", "2"], [4, 5]),
        (["--keep-last", "9"], [1, 2, 3, 4, 5]),
        (["--keep-last", "0"], []),
        (["--older-than", "25d"], [4, 5]),
        (["--older-than", "4w"], [4, 5]),
        (["--older-than", "1000h"], [2, 3, 4, 5]),
        (["--older-than", "999999w"], [1, 2, 3, 4, 5]),
        (["--older-than", "5d", "--keep-last", "2"], [4, 5]),
        (["--older-than", "35d", "--keep-last", "1"], [3, 4, 5]),
    ],
)
def test_it_removes_what_is_old_and_keeps_the_last(options, left, aged):
    """With both options only what is old and not among the last."""
    removed = loaded("prune", aged, *options, "--yes")["removed"]
    assert removed == [step for step in range(1, 6) if step not in left]
    assert rc.open_cassette(aged).steps == left
    assert len(list(aged.iterdir())) == 2 * len(left)


def test_it_asks_first(aged, monkeypatch):
    """And does nothing unless the answer is yes; in a pipe there is none."""
    done = invoke("prune", aged, "--keep-last", 1, status=1)
    assert "Remove steps 1-4 of" in done.stderr
    assert rc.open_cassette(aged).steps == [1, 2, 3, 4, 5]
    from typer.testing import CliRunner

    from rollout_cassettes.cli import app

    for answer, left in (("n\n", 5), ("y\n", 1)):
        CliRunner().invoke(app, ["prune", str(aged), "--keep-last", "1"], input=answer)
        assert len(rc.open_cassette(aged)) == left


def test_where_nothing_is_to_go_nobody_is_asked(aged):
    assert "Removed no steps" in invoke("prune", aged, "--keep-last", 9).stdout


def test_a_step_goes_with_all_its_interactions(record):
    path = record("several", lambda step: step, steps=[1, 1, 2])
    assert loaded("prune", path, "--keep-last", 1, "--yes")["removed"] == [1]
    assert [key.index for key in rc.open_cassette(path).keys] == [0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "give --keep-last, --older-than, or both"),
        (["--older-than", "30"], "30d, 2w, 12h or 90m"),
        (["--older-than", "-3d"], "30d, 2w, 12h or 90m"),
        (["--keep-last", "-1"], "--keep-last"),
    ],
)
def test_what_is_wrong_is_a_usage_error(options, told, aged):
    done = invoke("prune", aged, *options, "--yes", status=2)
    assert told in " ".join(done.stderr.split())
    assert rc.open_cassette(aged).steps == [1, 2, 3, 4, 5]


def test_a_damaged_manifest_has_no_age(aged):
    """It is named, and nothing is removed."""
    (aged / "step-000001.msgpack").write_bytes(b"")
    assert "is damaged" in invoke("prune", aged, "--older-than", "5d", "--yes", status=1).stderr
    assert len(list(aged.iterdir())) == 10
