"""A cassette reads like a sequence of steps."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.writer import Writer
from tests.cassette.recording import record, write

KEYS = [Key(1), Key(2), Key(2, "train", 1), Key(2, "val"), Key(10)]


@pytest.fixture
def cassette(tmp_path):
    """A cassette of steps 1, 2 and 10, with several interactions at step 2."""
    with closing(Writer(tmp_path / "c", None)) as writer:
        for key in reversed(KEYS):
            write(writer, key, str(key))
    return rc.open_cassette(tmp_path / "c")


def test_it_speaks_of_steps(cassette):
    """`steps`, `in`, `len`, `[step]`, iteration: in the order of the run."""
    assert cassette.steps == [1, 2, 10]
    assert len(cassette) == 3
    assert 2 in cassette
    assert 3 not in cassette
    assert "2" not in cassette
    assert cassette[2].response == "step 2"
    assert [interaction.step for interaction in cassette] == [1, 2, 10]


def test_a_step_may_have_several_interactions(cassette):
    """In order of phase, index and rank."""
    assert [each.key for each in cassette.interactions()] == KEYS
    assert [each.response for each in cassette.interactions(2)] == [
        str(key) for key in KEYS if key.step == 2
    ]
    interaction = cassette.interactions(2)[1]
    assert (interaction.step, interaction.phase) == (2, "train")
    assert (interaction.index, interaction.rank) == (1, 0)


def test_opening_and_finding_read_no_file(cassette, monkeypatch):
    """Only the directory is listed."""

    def fail(*args, **kwargs):
        raise AssertionError("a file was opened")

    monkeypatch.setattr(Path, "open", fail)
    monkeypatch.setattr(Path, "read_bytes", fail)
    again = rc.open_cassette(cassette.path)
    assert again[10].key == Key(10)
    assert len(again.interactions()) == 5


def test_what_is_no_interaction_is_passed_over(cassette):
    """Other files, and names that are not written as ours are."""
    for name in ("README.md", "step-2.msgpack", ".step-000003.msgpack.1.tmp", "step-000004.txt"):
        (cassette.path / name).write_text("x")
    assert rc.open_cassette(cassette.path).steps == [1, 2, 10]


def test_a_missing_step_names_the_nearest(cassette):
    """As attributes too."""
    with pytest.raises(rc.StepNotRecordedError) as caught:
        cassette[3]
    error = caught.value
    assert (error.step, error.recorded, error.path) == (3, [1, 2, 10], cassette.path)
    assert "1-2" in str(error)


def test_a_missing_cassette_is_said_to_be_missing(tmp_path):
    """With those beside it of a similar name."""
    record(tmp_path / "gsm8k-tiny", 1)
    with pytest.raises(rc.CassetteNotFoundError, match="gsm8k-tiny") as caught:
        rc.open_cassette(tmp_path / "gsm8k-tine")
    assert caught.value.path == tmp_path / "gsm8k-tine"


def test_a_file_is_no_cassette(tmp_path):
    """It is not read as an empty one."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(rc.CassetteError):
        rc.open_cassette(tmp_path / "file")


def test_an_empty_directory_is_an_empty_cassette(tmp_path):
    """Without steps; there is nothing to be refused."""
    assert rc.open_cassette(tmp_path).steps == []
    assert "none" in repr(rc.open_cassette(tmp_path))


def test_it_shows_its_path_and_steps(cassette):
    """As people write them."""
    assert repr(cassette) == f"<Cassette {cassette.path}: steps 1-2, 10>"


def test_its_path_may_begin_at_the_home_directory(tmp_path, monkeypatch):
    """As that of `record` may: a cassette is found where it was recorded."""
    monkeypatch.setenv("HOME", str(tmp_path))
    record(tmp_path / "c", "answer")
    assert rc.open_cassette("~/c")[1].response == "answer"
