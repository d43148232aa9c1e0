"""Recording a cassette anew: the old one goes only when the new one is whole."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.writer import Writer


@pytest.fixture
def old(engine, path, generate):
    """A cassette of steps 1 and 2, and what its files hold."""
    with rc.record(path=path, adapters=generate):
        for step in (1, 2):
            engine.generate(["old"], step)
    return contents(path)


@pytest.fixture
def rewrite(path, generate):
    return lambda **options: rc.use_cassette(
        **{"path": path, "record_mode": "rewrite", "adapters": generate} | options
    )


def fail_after(_recorded):
    raise ZeroDivisionError


def contents(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


def siblings(path):
    return sorted(file.name for file in path.parent.iterdir() if file.name != "project")


def test_the_new_cassette_takes_the_old_ones_place(engine, path, old, rewrite):
    with rewrite() as session:
        engine.generate(["new"], 7)
        assert contents(path) == old, "until the block ends"
    assert session.recorded == [7]
    assert session.path == path
    assert [each.request for each in rc.open_cassette(path)] == [["new"]]
    assert siblings(path) == ["cassette"]


def test_a_cassette_that_was_not_there_is_made(engine, path, rewrite):
    with rewrite(path=path / "deeper"):
        engine.generate(["new"], 7)
    assert rc.open_cassette(path / "deeper").steps == [7]


def test_a_link_stays_and_what_it_points_to_is_rewritten(engine, path, old, rewrite):
    link = path.with_name("link")
    link.symlink_to(path)
    with rewrite(path=link):
        engine.generate(["new"], 7)
    assert link.is_symlink()
    assert rc.open_cassette(path).steps == [7]


def test_the_old_one_stays_where_the_block_fails(engine, path, old, rewrite):
    with pytest.raises(ZeroDivisionError), rewrite():
        fail_after(engine.generate(["new"], 7))
    assert contents(path) == old
    assert siblings(path) == ["cassette"]


def test_the_old_one_stays_where_nothing_was_recorded(path, old, rewrite, caplog):
    with rewrite():
        pass
    assert contents(path) == old
    assert siblings(path) == ["cassette"]
    assert f"{path} stays as it was: the new recording is not whole" in caplog.text


def test_the_old_one_stays_where_a_step_could_not_be_written(
    engine, path, old, rewrite, monkeypatch
):
    write = Writer.write

    def fail(self, key, *args):
        if key.step == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, key, *args)

    monkeypatch.setattr(Writer, "write", fail)
    with rewrite():
        engine.generate(["new"], 7)
        engine.generate(["new"], 8)
    assert contents(path) == old
    assert siblings(path) == ["cassette"]


def test_the_old_one_stays_where_a_value_was_left_out(engine, path, old, rewrite):
    adapter = rc.adapters.function(f"{engine.__name__}:generate", request_of=lambda *_: object())
    with rewrite(adapters=adapter):
        engine.generate(["new"])
    assert contents(path) == old


@pytest.fixture
def failing_rename(monkeypatch):
    """Let the new cassette be refused its place."""
    rename = Path.rename

    def fail(self, target):
        if ".rewrite-" in self.name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.usefixtures("failing_rename")
def test_the_old_one_stays_where_the_new_one_can_not_be_put_in_its_place(
    engine, path, old, rewrite, caplog
):
    with rewrite():
        engine.generate(["new"], 7)
    assert "stays as it was: [Errno 13] Permission denied" in caplog.text
    assert contents(path) == old
    assert siblings(path) == ["cassette"]


@pytest.mark.usefixtures("failing_rename")
def test_strictness_turns_that_into_an_error(engine, path, old, rewrite):
    with pytest.raises(rc.CassetteWriteError, match="Permission"), rewrite(on_unstorable="error"):
        engine.generate(["new"], 7)
    assert contents(path) == old
    assert siblings(path) == ["cassette"]


def test_the_old_one_is_not_written_by_others_meanwhile(engine, path, old, rewrite, generate):
    with rewrite():
        for make in (rewrite, lambda: rc.record(path=path, adapters=generate)):
            with pytest.raises(rc.CassetteInUseError), make():
                pass
        engine.generate(["new"], 7)
    assert rc.open_cassette(path).steps == [7]
    with rc.record(8, path=path, adapters=generate):
        engine.generate(["new"], 8)


def test_nothing_is_left_behind_where_the_block_could_not_be_opened(engine, path, old, rewrite):
    with (
        pytest.raises(rc.EntryPointNotFoundError),
        rewrite(adapters=rc.adapters.function(f"{engine.__name__}:nothing")),
    ):
        pass
    assert contents(path) == old
    assert siblings(path) == ["cassette"]
    with rewrite():
        engine.generate(["new"], 7)


def test_an_exception_is_explanation_enough(path, old, rewrite, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(ZeroDivisionError), rewrite():
        raise ZeroDivisionError
    assert "nothing was recorded" not in caplog.text
