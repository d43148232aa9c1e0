"""What can't be recorded harms no run, unless strictness was asked for."""

from __future__ import annotations

import errno
import multiprocessing
import os
import sys
import threading

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.cassette.writer import Writer
from tests.session.engines import warnings_of


@pytest.fixture
def full_disk(monkeypatch):
    """Let writing fail from the given call on: `full_disk(after=1)`."""
    write = Writer.write

    def fill(after=0):
        count = iter(range(1000))

        def fail(self, *args):
            if next(count) < after:
                return write(self, *args)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Writer, "write", fail)

    return fill


# ---- what can't be stored


class Unstorable:
    """A class that no codec knows."""


@pytest.fixture
def odd():
    """A marked function that returns a value which can't be stored at step 2."""

    @rc.adapters.function(step_of=lambda step: step)
    def odd(step):
        return {"text": "ok", "tool": Unstorable() if step == 2 else None}

    return odd


def test_an_unstorable_value_is_left_out_and_reported(path, odd, caplog):
    with rc.record(path=path) as session:
        results = [odd(step) for step in (1, 2, 3)]
    assert type(results[1]["tool"]) is Unstorable
    assert session.recorded == [1, 2, 3]
    (name, (value,)) = next(iter(session.summary().omissions.items()))
    assert (name, value) == ("step 2", f"response/tool (a {__name__}.Unstorable)")
    assert "step 2 was recorded without response/tool" in str(session)
    assert any(
        "step 2" in text and "register_codec" in text and str(path) in text
        for text in warnings_of(caplog)
    )


def test_a_step_with_a_value_left_out_can_not_be_replayed(path, odd):
    with rc.record(path=path):
        odd(2)
    with pytest.raises(rc.UnstorableValueError) as caught, rc.replay(path=path):
        odd(2)
    assert caught.value.type_name == f"{__name__}.Unstorable"
    assert "step-000002" in str(caught.value)
    assert "register_codec" in str(caught.value)


def test_strictness_turns_an_unstorable_value_into_an_error(path, odd):
    with (
        pytest.raises(rc.UnstorableValueError) as caught,
        rc.record(path=path, on_unstorable="error") as session,
    ):
        list(map(odd, (1, 2)))
    assert caught.value.location == "response/tool"
    assert f"Step 2 can't be recorded in {path}" in str(caught.value)
    assert "on_unstorable='warn'" in str(caught.value)
    assert session.recorded == rc.open_cassette(path).steps == [1]
    assert session.missing == [2]


def test_strictness_looks_at_the_request_before_the_call(engine, path):
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", request_of=lambda prompts: Unstorable()
    )
    with (
        pytest.raises(rc.UnstorableValueError, match="request is a"),
        rc.record(path=path, adapters=adapter, on_unstorable="error"),
    ):
        engine.generate(["a"])
    assert engine.calls == []


def test_a_registered_codec_makes_a_type_storable(path):
    class Reward:
        def __init__(self, value):
            self.value = value

    rc.register_codec(
        Reward, lambda reward: reward.value, Reward, name="tests.session.recorder.Reward"
    )

    @rc.adapters.function
    def score():
        return [Reward(torch.ones(2)), Reward(3)]

    with rc.record(path=path, on_unstorable="error"):
        score()
    with rc.replay(path=path):
        first, second = score()
    assert torch.equal(first.value, torch.ones(2))
    assert (type(second), second.value) == (Reward, 3)


# ---- what can't be written


def test_a_full_disk_does_not_stop_the_run(engine, path, generate, full_disk, caplog):
    full_disk(after=1)
    with rc.record(path=path, adapters=generate) as session:
        results = [engine.generate(["a"], step) for step in (1, 2, 3)]
    assert len(results) == 3
    assert session.recorded == rc.open_cassette(path).steps == [1]
    assert session.missing == [2, 3]
    assert list(session.summary().faults) == ["step 2", "step 3"]
    assert "step 2 was not recorded (OSError: [Errno 28] No space left on device)" in str(session)
    first = warnings_of(caplog)[0]
    assert first.startswith(f"step 2 was not recorded in {path}: ")
    assert "No space left on device" in first


def test_strictness_turns_a_full_disk_into_an_error(engine, path, generate, full_disk):
    full_disk(after=1)
    with (
        pytest.raises(rc.CassetteWriteError) as caught,
        rc.record(path=path, adapters=generate, on_unstorable="error"),
    ):
        [engine.generate(["a"], step) for step in (1, 2)]
    assert (caught.value.path, caught.value.step, caught.value.phase) == (path, 2, "train")
    assert f"Step 2 can't be written to {path}: [Errno 28]" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert rc.open_cassette(path).steps == [1]


def test_an_unwritable_directory_does_not_stop_the_run(engine, tmp_path, generate, caplog):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "cassette"
    with rc.record([1, 2], path=path, adapters=generate) as session:
        engine.generate(["a"], 1)
    assert session.recorded == []
    assert session.missing == [1, 2]
    opening, first, *_ = warnings_of(caplog)
    assert str(path) in opening
    assert "can't be written to" in opening
    assert "step 1 was not recorded" in first
    assert "Not a directory" in first


def test_a_directory_that_becomes_writable_is_written_to(engine, tmp_path, generate):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with rc.record(path=blocker / "cassette", adapters=generate) as session:
        engine.generate(["a"], 1)
        blocker.unlink()
        engine.generate(["a"], 2)
    assert session.recorded == [2]
    assert session.missing == [1]


def test_strictness_turns_an_unwritable_directory_into_an_error(tmp_path, generate, engine):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "cassette"
    original = engine.generate
    with (
        pytest.raises(rc.CassetteWriteError) as caught,
        rc.record(path=path, adapters=generate, on_unstorable="error"),
    ):
        pytest.fail("the block was entered")
    assert (caught.value.path, caught.value.step) == (path, None)
    assert engine.generate is original


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (rc.record, {"on_unstorable": "warn"}),
        (rc.record, {"on_unstorable": "error"}),
        (rc.replay, {"on_miss": "record"}),
        (rc.use_cassette, {"record_mode": "once"}),
        (rc.use_cassette, {"record_mode": "rewrite"}),
    ],
)
def test_a_file_is_no_cassette(path, generate, make, options):
    path.write_text("precious")
    with (
        pytest.raises(rc.CassetteWriteError, match="is a file, and a cassette is a directory"),
        make(path=path, adapters=generate, **options),
    ):
        pass
    assert path.read_text() == "precious"


def test_an_adapter_that_fails_does_not_stop_the_run(engine, path, caplog):
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate",
        step_of=lambda prompts: {"a": 1}[prompts[0]],
        request_of=lambda prompts: prompts[1],
    )
    with rc.record(path=path, adapters=adapter) as session:
        assert engine.generate(["a"])["prompts"] == ["a"]
        assert engine.generate(["b"])["prompts"] == ["b"]
        assert engine.generate(["a", "c"])["prompts"] == ["a", "c"]
    assert session.recorded == [1]
    faults = session.summary().faults
    assert faults["step 1"] == "IndexError: list index out of range"
    assert faults[f"a call of {engine.__name__}:generate"] == "KeyError: 'b'"
    assert len(warnings_of(caplog)) == 2


def test_a_call_that_can_not_be_filed_is_not_said_to_be_missing(engine, path, caplog):
    """One warning says why it was not recorded; none that no call came."""
    adapter = rc.adapters.function(f"{engine.__name__}:generate", step_of=lambda prompts: "one")
    with rc.record(path=path, adapters=adapter):
        engine.generate(["a"])
    (message,) = warnings_of(caplog)
    assert "a step is a whole number" in message


def test_a_predicate_that_fails_does_not_stop_the_run(engine, path, generate):
    with rc.record(lambda step: 1 / (step - 2), path=path, adapters=generate) as session:
        for step in (1, 2, 3):
            engine.generate(["a"], step)
    assert session.recorded == [1, 3]
    assert "ZeroDivisionError" in str(session)
    assert len(engine.calls) == 3


def test_a_call_that_ends_after_the_block_is_reported_and_not_written(
    engine, path, caplog, write_module
):
    started, go_on = threading.Event(), threading.Event()

    @rc.adapters.function
    def generate():
        started.set()
        assert go_on.wait(300)
        return "late"

    with rc.record(path=path) as session:
        thread = threading.Thread(target=generate)
        thread.start()
        assert started.wait(300)
    go_on.set()
    thread.join()
    assert session.recorded == []
    assert "the call ended after the with-block" in str(session)
    assert "step 1 was not recorded" in caplog.text
    assert list(path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_does_not_write_under_its_parents_keys(engine, path, generate):
    context = multiprocessing.get_context("fork")

    def child():
        engine.generate(["child"], 1)
        engine.generate(["child"], 2)

    with rc.record(path=path, adapters=generate) as session:
        engine.generate(["parent"], 1)
        process = context.Process(target=child)
        process.start()
        process.join()
        engine.generate(["parent"], 2)
    assert process.exitcode == 0
    assert session.recorded == [1, 2]
    requests = [each.request for each in rc.open_cassette(path).interactions()]
    assert requests == [["parent"], ["parent"]]


@pytest.mark.parametrize("record_mode", ["once", "rewrite"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_that_leaves_the_block_closes_nothing(engine, path, generate, record_mode):
    """The lock and the draft are its parent's, which goes on recording."""
    parent = os.getpid()
    try:
        with rc.use_cassette(path, record_mode=record_mode, adapters=generate) as session:
            engine.generate(["a"], 1)
            child = os.fork()
            if child == 0:
                sys.exit()
            os.waitpid(child, 0)
            engine.generate(["a"], 2)
            with pytest.raises(rc.CassetteInUseError), Writer(session._directory):
                pass
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert session.recorded == [1, 2]
    assert rc.open_cassette(path).steps == [1, 2]
