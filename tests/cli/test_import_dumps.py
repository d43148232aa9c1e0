"""The command `import`: what it refuses, and what it says."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

import pytest

import rollout_cassettes as rc
from tests.cli.test_cli import run
from tests.dumps.test_directory import V0, V1, dump


class Marker:
    """Unpickling one makes a file: what a hostile dump could do."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def dumped(tmp_path):
    """Dumps whose contents are no pickle."""
    dump(tmp_path / "dump/exp_project/GBS4_N2_in64_out16/1", 1, V0)
    return tmp_path / "dump"


def fails(*arguments):
    """Run the command; give what it says when it ends with status 1, as it should."""
    done = run("import", *map(str, arguments))
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_it_refuses_pickles_that_nobody_trusts(dumped, tmp_path):
    """It says why, and how to go on; and loads nothing."""
    import pickle

    (file,) = dumped.rglob(V0)
    file.write_bytes(pickle.dumps(Marker(tmp_path / "ran")))
    said = fails(dumped, tmp_path / "c")
    assert "runs whatever code is in it" in said
    assert "--trust-pickle" in said
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "c").exists()


def test_it_names_what_is_not_there(tmp_path):
    """Before it asks for trust."""
    assert f"There is no directory {tmp_path / 'nothing'}" in fails(tmp_path / "nothing", "c")


def test_it_leaves_a_cassette_alone(dumped, tmp_path):
    """The message is that of recording; and a directory with other files is none of its own."""

    @rc.adapters.function()
    def rollout():
        return 1

    with rc.record(path=tmp_path / "mine"):
        rollout()
    said = fails(dumped, tmp_path / "mine", "--trust-pickle")
    assert "already holds step 1" in said
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    assert "is not empty" in fails(dumped, tmp_path / "other", "--trust-pickle")


def test_an_unknown_adapter_is_a_usage_error(dumped):
    """The known ones are listed."""
    done = run("import", str(dumped), "c", "--adapter", "trl")
    assert done.returncode == 2
    assert "verl_fully_async" in done.stderr


@pytest.mark.skipif(find_spec("verl") is not None, reason="verl is installed")
def test_without_verl_it_says_what_to_install(dumped, tmp_path):
    """The pickles hold objects of verl's."""
    assert "rollout_cassettes[verl]" in fails(dumped, tmp_path / "c", "--trust-pickle")


# ---- with verl


@pytest.fixture
def whole(tmp_path):
    """Dumps of two steps of V1, made of a committed recording, and one cut short."""
    import torch
    import transfer_queue  # noqa: F401 - registers its classes

    from tests.docs.blocks import ROOT

    for interaction in rc.open_cassette(ROOT / "cassettes" / "demo"):
        if interaction.step < 3:
            response = interaction.response
            keys = list(response["batch"].keys)
            directory = dump(
                tmp_path / f"dump/exp_project/GBS4_N2_in64_out16/{interaction.step}/0",
                interaction.step,
                V1,
                num_trajectories=len(keys),
            )
            payload = {"tensordict": response["data"], "keys": keys, "tags": response["batch"].tags}
            torch.save(payload, directory / V1)
    (tmp_path / "dump/exp_project/GBS4_N2_in64_out16/3/0").mkdir(parents=True)
    return tmp_path / "dump"


needs_verl = pytest.mark.skipif(find_spec("verl") is None, reason="needs verl")


@needs_verl
@pytest.mark.verl
def test_it_says_what_it_imported(whole, tmp_path):
    """In a sentence; a step that is not whole in a warning. No bar where there is no terminal."""
    done = run("import", str(whole), str(tmp_path / "c"), "--trust-pickle")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Steps 1-2 of ")
    assert len(done.stdout.splitlines()) == 1
    assert "Warning: step 3 was left out" in done.stderr
    assert "Importing" not in done.stderr
    assert rc.open_cassette(tmp_path / "c").steps == [1, 2]


@needs_verl
@pytest.mark.verl
def test_on_a_terminal_it_shows_how_far_it_is(whole, tmp_path):
    """On stderr; stdout says what it says in a pipe."""
    terminal = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"}
    done = run("import", str(whole), str(tmp_path / "c"), "--trust-pickle", "--json", env=terminal)
    assert "Importing" in done.stderr
    assert json.loads(done.stdout)["steps"] == [1, 2]


@needs_verl
@pytest.mark.verl
def test_it_says_so_to_machines(whole, tmp_path):
    """JSON, and nothing else, on stdout."""
    done = run("import", str(whole), str(tmp_path / "c"), "--trust-pickle", "--json")
    result = json.loads(done.stdout)
    assert result["steps"] == [1, 2]
    assert (result["adapter"], result["interactions"]) == ("verl_v1", 2)
    assert result["incomplete"] == {"3": "3/0/tq_batch.pt is missing or unfinished"}
    assert result["destination"] == str(tmp_path / "c")
    files = (tmp_path / "c").iterdir()
    assert result["nbytes"] == sum(file.stat().st_size for file in files)


@needs_verl
@pytest.mark.verl
def test_a_damaged_dump_ends_it(whole, tmp_path):
    """Named, with status 1, and nothing left at the destination."""
    file = next(whole.rglob(f"2/0/{V1}"))
    file.write_bytes(file.read_bytes()[:100])
    assert str(file) in fails(whole, tmp_path / "c", "--trust-pickle")
    assert {path.name for path in tmp_path.iterdir()} == {"dump"}
