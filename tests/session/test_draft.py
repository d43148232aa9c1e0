"""Recording beside a cassette: the old one goes only when the new one is whole."""

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


@pytest.mark.parametrize("mode", ["once", "new_steps", "all", "rewrite"])
def test_what_else_is_in_the_directory_stays(engine, path, old, discard, mode):
    """Cassettes below it, and files that are none of its own."""
    if mode == "once":
        for file in path.iterdir():
            file.unlink()
    (path / "README.md").write_text("What this is.")
    (path / "step-by-step.md").touch()
    with discard("once", path=path / "below"):
        engine.generate(["below"], 1)
    with discard(mode):
        engine.generate(["new"], 7)
        (path / "below" / "late").touch()  # as who records into it meanwhile
    assert 7 in rc.open_cassette(path).steps
    assert (path / "README.md").read_text() == "What this is."
    assert (path / "step-by-step.md").exists()
    assert (path / "below" / "late").exists()
    assert [each.request for each in rc.open_cassette(path / "below")] == [["below"]]
    assert siblings(path) == ["cassette"]


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
        if ".draft-" in self.name:
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


@pytest.mark.parametrize("refused", ["README.md", "below"])
def test_the_old_one_stays_where_what_else_is_there_can_not_stay(  # noqa: PLR0917
    engine, path, old, rewrite, monkeypatch, refused
):
    """As a directory that is a mount point."""
    (path / "README.md").touch()
    (path / "below").mkdir()
    rename = Path.rename

    def fail(self, target):
        if self.name == refused:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(rc.CassetteWriteError, match="busy"), rewrite(on_unstorable="error"):
        engine.generate(["new"], 7)
    assert {file.name for file in path.iterdir()} == {*old, "README.md", "below"}
    assert {name: (path / name).read_bytes() for name in old} == old
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


# ---- what a failing block recorded, discarded


@pytest.fixture
def discard(path, generate):
    return lambda mode, path=path: rc.use_cassette(
        path, record_mode=mode, adapters=generate, on_failure="discard"
    )


@pytest.mark.parametrize("mode", ["once", "new_steps", "all", "rewrite"])
def test_a_failing_block_leaves_no_cassette_where_there_was_none(engine, path, discard, mode):
    with pytest.raises(ZeroDivisionError), discard(mode):
        fail_after(engine.generate(["new"], 7))
    assert siblings(path) == []


@pytest.mark.parametrize("mode", ["new_steps", "all", "rewrite"])
def test_a_failing_block_leaves_a_cassette_as_it_was(engine, path, old, discard, mode):
    with pytest.raises(ZeroDivisionError), discard(mode) as session:
        fail_after(engine.generate(["new"], 7))
    assert session.recorded == [7]
    assert contents(path) == old
    assert siblings(path) == ["cassette"]


@pytest.mark.parametrize(
    ("mode", "steps"), [("new_steps", [1, 2, 7]), ("all", [1, 2, 7]), ("rewrite", [2, 7])]
)
def test_a_block_that_ends_well_puts_its_recording_in_place(  # noqa: PLR0917
    engine, path, old, discard, mode, steps
):
    with discard(mode):
        engine.generate(["old"], 2)
        engine.generate(["new"], 7)
        assert contents(path) == old, "until the block ends"
    assert rc.open_cassette(path).steps == steps
    is_new = contents(path)["step-000002.msgpack"] != old["step-000002.msgpack"]
    assert is_new is (mode != "new_steps")
    assert siblings(path) == ["cassette"]


def test_a_block_that_records_nothing_new_says_nothing(engine, path, old, discard, caplog):
    with discard("new_steps") as session:
        engine.generate(["old"], 1)
    assert session.played == [1]
    assert contents(path) == old
    assert "stays as it was" not in caplog.text


@pytest.mark.parametrize("strictness", ["warn", "error"])
def test_messages_name_the_cassette_and_not_where_it_is_recorded(engine, path, caplog, strictness):
    adapter = rc.adapters.function(f"{engine.__name__}:generate", request_of=lambda *_: object())
    told = ""
    try:
        with rc.use_cassette(
            path, adapters=adapter, on_failure="discard", on_unstorable=strictness
        ):
            engine.generate(["new"])
    except rc.UnstorableValueError as error:
        told = str(error)
    assert str(path) in told + caplog.text
    assert ".draft-" not in told + caplog.text


def test_damage_is_found_in_the_cassette_and_not_in_its_draft(engine, path, old, discard):
    (path / "step-000002.msgpack").write_bytes(b"")
    with pytest.raises(rc.CassetteCorruptError) as caught, discard("new_steps"):
        engine.generate(["old"], 2)
    assert caught.value.path == path / "step-000002.msgpack"


@pytest.mark.parametrize("letter", ["n", "\N{GREEK SMALL LETTER PI}"])
def test_a_name_may_be_as_long_as_the_file_system_allows(engine, tmp_path, rewrite, letter):
    path = tmp_path / (letter * (255 // len(letter.encode())))
    for step in (1, 2):
        with rewrite(path=path):
            engine.generate(["new"], step)
        assert rc.open_cassette(path).steps == [step]


def test_a_cassette_that_can_not_be_copied_is_refused(path, old, discard):
    """At the with-statement: what was not copied would be lost with the old one."""
    (path / "reads.json").symlink_to("nowhere")
    with pytest.raises(rc.CassetteWriteError, match="can't be copied") as caught:
        discard("all").__enter__()
    assert caught.value.path == path
    assert siblings(path) == ["cassette"]
