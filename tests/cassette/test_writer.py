"""Interactions are on the disk whole, or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import closing, suppress
from pathlib import Path

import pytest
import torch

from rollout_cassettes import CassetteInUseError, open_cassette
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.writer import Writer
from tests.cassette.recording import record, write

ROOT = Path(__file__).parents[2]


def names(path):
    """Give the names in a directory, hidden ones included."""
    return sorted(file.name for file in path.iterdir())


class Crash(BaseException):
    """The machine goes down: nothing after it runs but what Python can't help running."""


@pytest.fixture
def crash_at(monkeypatch):
    """Crash at the n-th operation on the disk; give how many there were."""

    def arm(number):
        count = 0

        def counted(original):
            def operation(*args, **kwargs):
                nonlocal count
                count += 1
                if count == number:
                    raise Crash
                return original(*args, **kwargs)

            return operation

        monkeypatch.setattr(os, "fsync", counted(os.fsync))
        for name in ("replace", "unlink", "open"):
            monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
        return lambda: count

    return arm


@pytest.mark.parametrize("compression", ["zstd", None])
def test_an_interaction_is_two_files(tmp_path, compression):
    """The tensors, and the manifest; nothing else is left."""
    record(tmp_path / "c", torch.ones(3), compression=compression)
    ending = ".zst" if compression else ""
    assert names(tmp_path / "c") == ["step-000001.msgpack", f"step-000001.safetensors{ending}"]


@pytest.mark.parametrize("number", range(1, 13))
def test_a_crash_leaves_every_interaction_whole_or_absent(tmp_path, crash_at, monkeypatch, number):
    """Whatever the writer was about to do: the first step stays, the second is there or isn't."""
    record(tmp_path / "c", torch.arange(3), step=1)
    with monkeypatch.context():
        crash_at(number)
        with suppress(Crash):
            record(tmp_path / "c", torch.arange(5), step=2)
    monkeypatch.undo()
    for interaction in open_cassette(tmp_path / "c"):
        interaction.verify()
        assert interaction.response.tolist() == list(range(1 + 2 * interaction.step))


@pytest.mark.parametrize("number", range(1, 16))
def test_a_crash_while_replacing_leaves_the_old_the_new_or_nothing(
    tmp_path, crash_at, monkeypatch, number
):
    """Never a mixture: an old manifest with new tensors, or the reverse."""
    record(tmp_path / "c", torch.zeros(3), compression=None)
    crash_at(number)
    with suppress(Crash):
        record(tmp_path / "c", torch.ones(3), compression="zstd")
    monkeypatch.undo()
    cassette = open_cassette(tmp_path / "c")
    for interaction in cassette:
        interaction.verify()
        assert interaction.response.tolist() in ([0.0] * 3, [1.0] * 3)
    record(tmp_path / "c", torch.full((3,), 2.0))  # and the next writer is not in its way
    assert open_cassette(tmp_path / "c")[1].response.tolist() == [2.0] * 3


def test_a_killed_process_leaves_its_finished_steps(tmp_path):
    """A real one, killed in the middle of its writing."""
    code = f"""
        import itertools, torch
        from tests.cassette.recording import record
        print("ready", flush=True)
        for step in itertools.count(1):
            record(r"{tmp_path / "c"}", torch.full((50_000,), float(step)), step=step)
            print(step, flush=True)
    """
    code = code.replace('r"', '__import__("pathlib").Path(r"').replace('", torch', '"), torch')
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        while process.stdout.readline().strip() != "5":
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    cassette = open_cassette(tmp_path / "c")
    assert cassette.steps[:5] == [1, 2, 3, 4, 5]
    for interaction in cassette:
        interaction.verify()
        assert interaction.response[0] == interaction.step
    with closing(Writer(tmp_path / "c")):  # the lock went with the process
        assert not [name for name in names(tmp_path / "c") if name.endswith(".tmp")]


def test_leftovers_of_an_interrupted_writer_are_cleared_away(tmp_path):
    """And nothing else: files of others stay."""
    record(tmp_path / "c", 1)
    for name in (".step-000002.msgpack.0a1b.tmp", "README.md", ".gitattributes"):
        (tmp_path / "c" / name).write_text("x")
    with closing(Writer(tmp_path / "c")):
        assert names(tmp_path / "c")[:2] == [".gitattributes", "README.md"]
        assert len(names(tmp_path / "c")) == 4


def test_tensors_without_a_manifest_are_no_interaction(tmp_path):
    """What a writer left that was interrupted between the two; the next one replaces it."""
    record(tmp_path / "c", torch.ones(1), step=1)
    record(tmp_path / "c", torch.ones(1), step=2)
    (tmp_path / "c" / "step-000002.msgpack").unlink()
    assert open_cassette(tmp_path / "c").steps == [1]
    record(tmp_path / "c", torch.zeros(1), step=2)
    assert open_cassette(tmp_path / "c")[2].response.tolist() == [0.0]


def test_two_writers_are_refused(tmp_path):
    """The second one is told where and what to do; when the first has closed, it may write."""
    with closing(Writer(tmp_path / "c")), pytest.raises(CassetteInUseError) as caught:
        Writer(tmp_path / "c")
    assert caught.value.path == tmp_path / "c"
    assert "another session" in str(caught.value)
    with closing(Writer(tmp_path / "c")):
        pass


def test_a_writer_in_another_process_is_noticed(tmp_path):
    """The lock is the file system's."""
    code = "import sys; from pathlib import Path; from rollout_cassettes.cassette.writer import Writer; Writer(Path(sys.argv[1]))"
    with closing(Writer(tmp_path / "c")):
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "c"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "CassetteInUseError" in done.stderr


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    """The error is the system's, and no half-written file stays behind."""
    record(tmp_path / "c", torch.zeros(3))
    before = names(tmp_path / "c")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            record(tmp_path / "c", torch.ones(3), step=2)
    assert names(tmp_path / "c") == before
    assert open_cassette(tmp_path / "c")[1].response.tolist() == [0.0] * 3


def test_another_compression_takes_the_old_file_away(tmp_path):
    """An interaction has one tensors file."""
    record(tmp_path / "c", torch.ones(3), compression=None)
    record(tmp_path / "c", torch.ones(3), compression="zstd")
    assert names(tmp_path / "c") == ["step-000001.msgpack", "step-000001.safetensors.zst"]


def test_the_manifest_is_renamed_last(tmp_path, monkeypatch):
    """When it has its name, the tensors have theirs."""
    renamed = []
    original = Path.replace

    def replace(self, target):
        renamed.append(Path(target).name)
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    record(tmp_path / "c", torch.ones(3))
    assert renamed == ["step-000001.safetensors.zst", "step-000001.msgpack"]


def test_keys_become_file_names(tmp_path):
    """Phase, index and rank, where they are not the usual ones."""
    with closing(Writer(tmp_path / "c", None)) as writer:
        write(writer, Key(12, "val", 1, 3), 1)
    assert "step-000012.val.1.rank3.msgpack" in names(tmp_path / "c")
