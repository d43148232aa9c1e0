"""Recording: what is kept, and that it never harms the run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch

import rollout_cassettes as rc
from tests.session.engines import warnings_of

# ---- what is recorded


def test_live_calls_are_made_and_recorded(engine, path, generate):
    with rc.record(path=path, adapters=generate) as session:
        live = [engine.generate([text], step) for step, text in enumerate("abc", start=1)]
    assert [prompts for prompts, _ in engine.calls] == [["a"], ["b"], ["c"]]
    assert [each.response for each in rc.open_cassette(path)] == live
    assert [each.request for each in rc.open_cassette(path)] == [["a"], ["b"], ["c"]]
    assert session.recorded == [1, 2, 3]
    assert session.played == session.generated == session.missing == session.unplayed == []


def test_the_summary_counts_bytes_and_seconds(engine, path, generate):
    with rc.record(path=path, adapters=generate) as session:
        engine.generate(["a"], 1)
        assert session.recorded == [1], "the summary is up to date inside the block"
    summary = session.summary()
    assert summary.nbytes == sum(file.stat().st_size for file in path.iterdir())
    assert summary.seconds == rc.open_cassette(path)[1].manifest.seconds > 0
    assert str(session).startswith("1 step recorded, ")
    assert repr(session) == f"<Recorder {path}, steps all, closed: {session}>"


def test_only_selected_steps_are_recorded(engine, path, generate):
    with rc.record("2-3,5", path=path, adapters=generate) as session:
        for step in range(1, 5):
            engine.generate(["a"], step)
    assert session.recorded == rc.open_cassette(path).steps == [2, 3]
    assert session.missing == [5]
    assert len(engine.calls) == 4


def test_several_calls_of_a_step_are_filed_in_the_order_in_which_they_started(
    engine, path, generate
):
    with rc.record(path=path, adapters=generate):
        live = [engine.generate([text], 1) for text in "abc"]
    interactions = rc.open_cassette(path).interactions(1)
    assert [each.index for each in interactions] == [0, 1, 2]
    assert [each.response for each in interactions] == live


def test_the_step_is_the_sessions_where_it_was_set_and_else_a_count(engine, path, counted):
    with rc.record(path=path, adapters=counted) as session:
        engine.generate(["a"])
        session.step = 7
        engine.generate(["b"])
        session.step = None
        engine.generate(["c"])
    assert session.recorded == [1, 3, 7]


@pytest.mark.parametrize("compression", ["zstd", None])
def test_files_are_compressed_as_asked(path, compression):
    @rc.adapters.function
    def generate():
        return torch.zeros(4)

    with rc.record(path=path, compression=compression):
        generate()
    suffix = ".safetensors.zst" if compression else ".safetensors"
    assert (path / f"step-000001{suffix}").is_file()
    assert torch.equal(rc.open_cassette(path)[1].response, torch.zeros(4))


def test_the_generators_that_the_call_advanced_are_kept(engine, path, generate):
    with rc.record(path=path, adapters=generate):
        engine.generate(["a"], 1)
        engine.generate([], 2)
    first, second = rc.open_cassette(path)
    assert list(first.random_state["whole"]) == ["python"]
    assert second.random_state == {}


# ---- calls that fail


def test_a_failed_call_is_not_counted(write_module, path, counted, engine, monkeypatch):
    """The loop tries again, and gets the same place: a replay need not fail first."""
    generate = engine.generate

    def flaky(prompts):
        if not engine.calls:
            engine.calls.append("failed")
            raise ConnectionError("no engine")
        return generate(prompts)

    monkeypatch.setattr(engine, "generate", flaky)
    for adapter, place in ((counted, path), (step_one(engine), path / "sub")):
        engine.calls.clear()
        with rc.record(path=place, adapters=adapter) as session:
            with pytest.raises(ConnectionError):
                engine.generate(["a"])
            live = engine.generate(["a"])
        assert session.recorded == [1]
        assert [str(key) for key in rc.open_cassette(place).keys] == ["step 1"]
        with rc.replay(path=place, adapters=adapter):
            assert engine.generate(["a"]) == live


def step_one(engine):
    return rc.adapters.function(f"{engine.__name__}:generate", step_of=lambda prompts: 1)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, StopIteration])
def test_finished_steps_stay_when_the_block_ends_in_an_exception(engine, path, generate, error):
    raised, session = error("from the loop"), rc.record(path=path, adapters=generate)
    live = []

    def train():
        with session:
            live.append(engine.generate(["a"], 1))
            raise raised

    with pytest.raises(error) as caught:
        train()
    assert caught.value is raised
    assert caught.value.__context__ is None
    assert session.recorded == [1]
    assert [each.response for each in rc.open_cassette(path)] == live
    assert sorted(file.name for file in path.iterdir()) == [
        "step-000001.msgpack",
        "step-000001.safetensors.zst",
    ]


# ---- what is there already


def recorded(engine, path, adapter, steps=(1, 2)):
    with rc.record(path=path, adapters=adapter):
        return {step: engine.generate(["a"], step) for step in steps}


def test_existing_steps_are_refused_at_the_with_statement(engine, path, generate):
    before = recorded(engine, path, generate, (1, 2, 3, 7))
    original = engine.generate
    with (
        pytest.raises(rc.StepExistsError) as caught,
        rc.record("2-9", path=path, adapters=generate),
    ):
        pytest.fail("the block was entered")
    assert (caught.value.path, caught.value.steps) == (path, [2, 3, 7])
    assert f"The cassette {path} already holds steps 2-3, 7" in str(caught.value)
    assert "on_existing='skip'" in str(caught.value)
    assert engine.generate is original
    assert {each.step: each.response for each in rc.open_cassette(path)} == before


def test_steps_that_are_not_selected_may_exist(engine, path, generate):
    recorded(engine, path, generate)
    with rc.record(3, path=path, adapters=generate):
        engine.generate(["a"], 3)
    assert rc.open_cassette(path).steps == [1, 2, 3]


def test_skip_leaves_what_is_there_and_records_what_is_missing(engine, path, generate):
    before = recorded(engine, path, generate)
    with rc.record(path=path, adapters=generate, on_existing="skip") as session:
        for step in (1, 2, 3):
            engine.generate(["b"], step)
    assert session.recorded == [3]
    assert session.missing == []
    cassette = rc.open_cassette(path)
    assert (cassette[1].response, cassette[2].response) == (before[1], before[2])
    assert cassette[3].request == ["b"]


def test_skip_keeps_the_first_calls_of_a_step_and_records_the_later_ones(engine, path, generate):
    """As after a crash in the middle of a step."""
    before = recorded(engine, path, generate, (1,))
    with rc.record(path=path, adapters=generate, on_existing="skip") as session:
        engine.generate(["again"], 1)
        more = engine.generate(["more"], 1)
    assert session.recorded == [1]
    interactions = rc.open_cassette(path).interactions(1)
    assert [each.response for each in interactions] == [before[1], more]


def test_overwrite_replaces_whole_steps_and_only_those(engine, path, generate):
    """An old second interaction must not stay behind a new first one."""
    with rc.record(path=path, adapters=generate):
        for step in (1, 1, 1, 2):
            engine.generate(["old"], step)
    with rc.record(path=path, adapters=generate, on_existing="overwrite"):
        engine.generate(["new"], 1)
    requests = {str(each.key): each.request for each in rc.open_cassette(path).interactions()}
    assert requests == {"step 1": ["new"], "step 2": ["old"]}
    assert len(list(path.iterdir())) == 4


def test_overwrite_keeps_the_other_phases_of_a_step(engine, path):
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", phase_of=lambda prompts: prompts[0]
    )
    with rc.record(path=path, adapters=adapter):
        engine.generate(["train"])
        engine.generate(["val"])
    before = rc.open_cassette(path).interactions(1)[1].response
    with rc.record(path=path, adapters=adapter, on_existing="overwrite"):
        engine.generate(["train"])
    assert rc.open_cassette(path).interactions(1)[1].response == before


def test_what_another_adapter_recorded_is_neither_skipped_nor_overwritten(engine, path):
    generating, scoring = (
        rc.adapters.function(f"{engine.__name__}:{name}", step_of=lambda *_: 1)
        for name in ("generate", "Engine.static")
    )
    with rc.record(path=path, adapters=generating):
        generated = [engine.generate(["a"]) for _ in range(2)]
    with rc.record(path=path, adapters=scoring, on_existing="skip") as session:
        scored = [engine.Engine.static(["s"]) for _ in range(2)]
    assert session.recorded == [1]
    for _ in range(2):
        with rc.replay(path=path, adapters=[generating, scoring], on_unplayed="error"):
            assert [engine.generate(["a"]) for _ in generated] == generated
            assert [engine.Engine.static(["s"]) for _ in scored] == scored
        with rc.record(path=path, adapters=scoring, on_existing="overwrite"):
            scored = [engine.Engine.static(["s"])]


def test_what_can_not_be_read_is_not_overwritten(engine, path, generate, caplog):
    recorded(engine, path, generate)
    manifest = path / "step-000001.msgpack"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    damaged = manifest.read_bytes()
    with rc.record(path=path, adapters=generate, on_existing="overwrite") as session:
        for step in (1, 2):
            assert engine.generate(["new"], step)["prompts"] == ["new"]
    assert (session.recorded, session.missing) == ([2], [1])
    assert "step 1 was not recorded (CassetteCorruptError: " in str(session)
    assert manifest.read_bytes() == damaged
    with (
        pytest.raises(rc.CassetteError, match=r"step-000001\.msgpack is damaged"),
        rc.record(path=path, adapters=generate, on_existing="overwrite", on_unstorable="error"),
    ):
        engine.generate(["new"], 1)


def test_an_old_interaction_that_can_not_be_taken_away_is_reported(
    engine, path, generate, monkeypatch
):
    recorded(engine, path, generate, (1, 1))
    unlink = Path.unlink

    def fail(self, **options):
        if ".1." in self.name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(self, **options)

    monkeypatch.setattr(Path, "unlink", fail)
    with rc.record(path=path, adapters=generate, on_existing="overwrite") as session:
        engine.generate(["new"], 1)
    assert "step 1 was not recorded (PermissionError" in str(session)
    assert session.missing == [1]


def test_a_cassette_has_one_writer(engine, path, generate):
    with rc.record(path=path, adapters=generate):
        for make in (rc.record, lambda **options: rc.replay(on_miss="record", **options)):
            with pytest.raises(rc.CassetteInUseError) as caught, make(path=path, adapters=generate):
                pass
            assert caught.value.path == path
        engine.generate(["a"], 1)
    with rc.record(2, path=path, adapters=generate) as session:
        engine.generate(["a"], 2)
    assert session.recorded == [2]


# ---- nothing came


def test_a_recording_that_stayed_empty_says_why(engine, path, caplog):
    adapters = [
        rc.adapters.function(f"{engine.__name__}:generate"),
        rc.adapters.function("module_that_nobody_imports:Engine.generate"),
    ]
    with rc.record("2-3", path=path, adapters=adapters):
        engine.generate(["a"])
    (text,) = warnings_of(caplog)
    assert f"nothing was recorded in {path}: no call for the steps 2-3 came through" in text
    assert "calls came for step 1" in text
    assert "not imported while the session was open: module_that_nobody_imports" in text
    assert "imported a function by name" in text


def test_an_exception_in_flight_is_explanation_enough(path, generate, caplog):
    with pytest.raises(ValueError, match="loop"), rc.record(path=path, adapters=generate):
        raise ValueError("loop")
    assert warnings_of(caplog) == []
