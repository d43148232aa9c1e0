"""Replays that learn which fields of responses a run reads."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.reads import NAME, load_reads

ADAPTER = "tests.session.reads"


@pytest.fixture
def generate():
    """A function of steps whose responses have three fields."""

    @rc.adapters.function(step_of=lambda step: step, name=ADAPTER)
    def answer(step):
        return {"text": [f"t{step}"], "scores": [0.5], "logits": [[0.0] * 100]}

    return answer


@pytest.fixture
def path(generate, tmp_path):
    with rc.record(path=tmp_path / "c"):
        for step in (1, 2):
            generate(step)
    return tmp_path / "c"


def test_what_was_read_is_known_and_the_rest_is_left_out(generate, path, tmp_path):
    """By default, once a replay was tracked; and the next replay adds to it."""
    with rc.replay(path=path, track_reads=True) as session:
        assert session.reads == {}
        assert generate(1)["text"] == ["t1"]
        assert session.reads == {ADAPTER: ["text"]}
    assert load_reads(path) == {ADAPTER: ["text"]}
    with rc.replay(1, path=path, track_reads=True) as session:
        assert generate(1)["scores"] == [0.5]
    assert session.reads == {ADAPTER: ["scores"]}
    assert load_reads(path) == {ADAPTER: ["scores", "text"]}
    shrunk = rc.shrink(path, tmp_path / "small")
    assert shrunk.dropped == ["logits"]
    with rc.replay(path=tmp_path / "small"):
        assert generate(2) == {"text": ["t2"], "scores": [0.5]}
    assert rc.shrink(path, tmp_path / "read", fields="read").dropped == ["logits"]
    assert rc.shrink(path, tmp_path / "all", fields="all").dropped == []


def test_nothing_is_dropped_where_no_replay_was_tracked(generate, path, tmp_path):
    with rc.replay(path=path) as session:
        assert generate(1)["text"] == ["t1"]
    assert session.reads is None
    assert not (path / NAME).exists()
    assert rc.shrink(path, tmp_path / "small").dropped == []
    with pytest.raises(rc.CassetteError, match="no replay of it was tracked"):
        rc.shrink(path, tmp_path / "other", fields="read")


def test_a_block_that_fails_has_not_read_all(generate, path):
    """What it read is told, and not kept."""
    session = rc.replay(path=path, track_reads=True)
    with pytest.raises(KeyError), session:
        generate(1)["other"]
    assert session.reads == {ADAPTER: []}
    assert not (path / NAME).exists()


def test_a_cassette_that_cant_be_written_to_is_replayed_all_the_same(
    generate, path, caplog, monkeypatch
):
    from rollout_cassettes.session import reads

    def refuse(*_):
        raise PermissionError(13, "Permission denied", str(path / NAME))

    monkeypatch.setattr(reads, "store_reads", refuse)
    with caplog.at_level(logging.WARNING), rc.replay(path=path, track_reads=True) as session:
        assert generate(1)["text"] == ["t1"]
    assert session.reads == {ADAPTER: ["text"]}
    assert "in session.reads alone" in caplog.text


def test_coroutines_are_tracked_too(tmp_path):
    @rc.adapters.function(step_of=lambda step: step, name="tests.session.reads.later")
    async def answer(step):
        return {"a": step, "b": step}

    async def read():
        return (await answer(1))["a"]

    with rc.record(path=tmp_path / "c"):
        asyncio.run(read())
    with rc.replay(path=tmp_path / "c", track_reads=True) as session:
        assert asyncio.run(read()) == 1
    assert session.reads == {"tests.session.reads.later": ["a"]}


def test_what_cant_be_observed_is_refused(tmp_path):
    """A named adapter when the block opens, a response when it is handed out: nothing is guessed."""
    for adapter in (rc.adapters.VerlV1(), rc.adapters.VerlV0(), rc.adapters.TrlTrainer("scored")):
        with (
            pytest.raises(rc.CassetteError, match=f"observed for {adapter.name}: "),
            rc.replay(path=tmp_path, adapters=adapter, track_reads=True),
        ):
            pass

    @rc.adapters.function(step_of=lambda step: step, name="tests.session.reads.list")
    def answer(step):
        return [step]

    with rc.record(path=tmp_path / "c"):
        answer(1)
    with (
        rc.replay(path=tmp_path / "c", track_reads=True),
        pytest.raises(rc.CassetteError, match="fields of a list"),
    ):
        answer(1)


@pytest.mark.parametrize("content", ["", "[]", '{"reads": 3}', '{"format": "x"}', "\x00"])
def test_a_file_that_is_none_of_ours_is_damage(path, tmp_path, content):
    (path / NAME).write_text(content)
    with pytest.raises(rc.CassetteCorruptError, match=NAME):
        rc.shrink(path, tmp_path / "small")
    assert rc.shrink(path, tmp_path / "small", fields="all").steps == [1, 2]


def test_the_file_is_in_nobodys_way(generate, path):
    """A cassette reads, verifies and lists as before."""
    from tests.cli.program import invoke, loaded

    before = loaded("ls", path)
    with rc.replay(path=path, track_reads=True):
        assert generate(1)["text"] == ["t1"]
    assert json.loads((path / NAME).read_text())["version"] == 1
    assert rc.open_cassette(path).steps == [1, 2]
    assert [line["errors"] for line in loaded("ls", path)] == [[]]
    assert loaded("ls", path)[0]["nbytes"] == before[0]["nbytes"]
    invoke("verify", path)
