"""The command `shrink`."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.cli.program import DEMO, invoke, loaded


def test_it_says_what_was_kept_of_what(tmp_path):
    done = invoke("shrink", DEMO, tmp_path / "small", "--rows", 4, "--steps", "1-2")
    assert f"{tmp_path / 'small'}: steps 1-2, 8 of 32 rows, " in done.stdout
    assert f"kB of 25.1 kB of {DEMO}" in done.stdout
    small = rc.open_cassette(tmp_path / "small", numpy=True)
    assert [len(each.trajectories) for each in small] == [4, 4]
    assert {row.group for each in small for row in each.trajectories} == {0}
    invoke("verify", tmp_path / "small")
    assert loaded("ls", tmp_path / "small")[0]["rows"] == 8


def test_it_says_the_same_to_machines(tmp_path):
    found = loaded("shrink", DEMO, tmp_path / "small", "--fields", "responses, prompts,uid")
    assert found["path"] == str(tmp_path / "small")
    assert found["source"] == str(DEMO)
    assert (found["steps"], found["interactions"]) == ([1, 2, 3], 3)
    assert (found["rows"], found["rows_before"]) == (48, 48)
    assert "rm_scores" in found["dropped"]
    assert found["nbytes"] < found["nbytes_before"] == 25076
    data = rc.open_cassette(tmp_path / "small", numpy=True)[1].response["data"]
    assert sorted(data) == ["prompts", "responses", "uid"]


@pytest.mark.parametrize("size", ["9k", "9kB", "9.0 kB", "9000", "0.009M", "0.009 MB", "9K"])
def test_it_takes_no_more_than_it_may(tmp_path, size):
    found = loaded("shrink", DEMO, tmp_path / "small", "--max-bytes", size)
    assert found["steps"] == [1, 2]
    assert found["rows"] == 8
    assert sum(file.stat().st_size for file in (tmp_path / "small").iterdir()) <= 9000


def test_what_cant_be_made_to_fit_is_told_with_what_takes_the_room(tmp_path):
    told = invoke("shrink", DEMO, tmp_path / "small", "--max-bytes", "1k", status=1).stderr
    assert "can't be shrunk to 1.0 kB: step 1" in told
    assert "response/data/rollout_log_probs/values" in told
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--rows", "0"], 2, "--rows"),
        (["--max-bytes", "few"], 2, "200k, 1.5M or 4096"),
        (["--max-bytes", "0k"], 2, "200k, 1.5M or 4096"),
        (["--steps", "3-1"], 2, "run backwards"),
        (["--steps", "9"], 1, "Step 9 is not in"),
        (["--fields", "nope"], 1, "has no field 'nope'"),
        (["--fields", ","], 1, "no field that is to be kept"),
        (["--fields", "read"], 1, "no replay of it was tracked"),
    ],
)
def test_what_makes_no_sense_leaves_nothing(tmp_path, options, status, told):
    done = invoke("shrink", DEMO, tmp_path / "small", *options, status=status)
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_replaced(tmp_path):
    invoke("shrink", DEMO, tmp_path / "small", "--steps", "1")
    assert "already holds step 1" in invoke("shrink", DEMO, tmp_path / "small", status=1).stderr
    assert (
        "into itself" in invoke("shrink", tmp_path / "small", tmp_path / "small", status=1).stderr
    )
    assert (
        "There is no cassette" in invoke("shrink", tmp_path / "x", tmp_path / "y", status=1).stderr
    )
