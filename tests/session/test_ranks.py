"""The processes of a distributed run share a cassette: each records and replays its own calls."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.writer import Writer
from tests.session.engines import warnings_of

ROOT = Path(__file__).parents[2]

#: Keeps the block open until both processes have recorded: they write at the same time.
TRAINING = """
    import sys, time
    from pathlib import Path
    import rollout_cassettes as rc

    session = rc.{verb}(path=sys.argv[1], on_{leftover}="error")

    @rc.adapters.function(request_of=lambda prompts, who: prompts)
    def generate(prompts, who):
        return [f"{{who}} answers {{prompt}}" for prompt in prompts]

    with session:
        print(generate(["a"], sys.argv[2]), generate(["b"], sys.argv[2]))
        for rank in ("", ".rank1"):
            while not Path(sys.argv[1], f"step-000002{{rank}}.msgpack").exists():
                time.sleep(0.01)
    print(session.played, session.recorded, session.unplayed)
"""


@pytest.fixture
def as_rank(monkeypatch):
    """Make this process one of two: `as_rank(1)`."""

    def make(rank):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", str(rank))

    return make


@rc.adapters.function(request_of=lambda prompts: prompts)
def generate(prompts):
    return [f"answer to {prompt}" for prompt in prompts]


def run_both(verb, leftover, path, who):
    """Run the training in two processes at once, and return what they print."""
    code = textwrap.dedent(TRAINING.format(verb=verb, leftover=leftover))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, path, f"{who} {rank}"],
            cwd=ROOT,
            env=os.environ | {"RANK": str(rank), "WORLD_SIZE": "2"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    return [process.communicate(timeout=300)[0].splitlines() for process in processes]


def test_two_processes_record_into_one_cassette_and_replay_their_own(tmp_path):
    """Neither is in the other's way, and neither misses what the other one played."""
    path = tmp_path / "c"
    live = run_both("record", "existing", path, "live")
    assert live[1] == ["['live 1 answers a'] ['live 1 answers b']", "[] [1, 2] []"]
    assert [key.stem for key in rc.open_cassette(path).keys] == [
        "step-000001",
        "step-000001.rank1",
        "step-000002",
        "step-000002.rank1",
    ]
    replayed = run_both("replay", "unplayed", path, "again")
    assert [lines[0] for lines in replayed] == [lines[0] for lines in live]
    assert [lines[1] for lines in replayed] == ["[1, 2] [] []"] * 2


def test_another_run_is_refused(tmp_path, as_rank):
    """The first process holds the lock for all."""
    as_rank(0)
    with closing(Writer(tmp_path / "c")), pytest.raises(rc.CassetteInUseError):
        Writer(tmp_path / "c")


def test_a_process_leaves_alone_what_another_one_is_writing(tmp_path, as_rank):
    """And clears its own leftovers away."""
    path = tmp_path / "c"
    path.mkdir()
    ours, theirs = path / ".step-000001.rank1.msgpack.0a.tmp", path / ".step-000001.msgpack.0a.tmp"
    ours.touch()
    theirs.touch()
    as_rank(1)
    with closing(Writer(path)):
        assert not ours.exists()
        assert theirs.exists()


def test_what_another_process_recorded_is_no_reason_to_refuse(tmp_path, as_rank):
    """It may have been faster."""
    for rank in range(2):
        as_rank(rank)
        with rc.record(path=tmp_path / "c") as session:
            generate(["a"])
        assert session.recorded == [1]


def test_an_adapter_that_files_calls_under_another_rank_is_told(tmp_path, as_rank, caplog):
    """Two processes would write the same file."""

    class Mistaken(type(rc.adapters.function("json:dumps"))):
        def place(self, call):
            return super().place(call)._replace(rank=0)

    import json

    as_rank(1)
    with rc.record(
        path=tmp_path / "c",
        adapters=Mistaken("json:dumps", None, None, None, None),
        on_unstorable="warn",
    ):
        json.dumps("a")
    assert "this process has rank 1" in warnings_of(caplog)[0]


def test_processes_can_not_rewrite_a_cassette(tmp_path, as_rank):
    """Each would take the place of all."""
    as_rank(0)
    with pytest.raises(rc.CassetteError, match="several processes"):  # noqa: SIM117
        with rc.use_cassette(tmp_path / "c", record_mode="rewrite"):
            pass


def test_a_lone_process_replays_what_the_first_one_recorded(tmp_path, as_rank, monkeypatch):
    """And is told what it leaves unplayed."""
    for rank in range(2):
        as_rank(rank)
        with rc.record(path=tmp_path / "c"):
            generate(["a"])
    monkeypatch.undo()
    with rc.replay(path=tmp_path / "c") as session:
        assert generate(["a"]) == ["answer to a"]
    assert session.unplayed == [1]
