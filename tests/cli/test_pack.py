"""The commands `pack` and `unpack`."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.cassette.repacking import repack
from rollout_cassettes.cassette.writer import Writer
from tests.cli.program import DEMO, invoke, loaded


def contents(path):
    """Give the bytes of each file."""
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_unpacking_and_packing_changes_not_a_bit(demo):
    """The files of the demo are the same again."""
    before = contents(demo)
    done = invoke("unpack", demo)
    assert "3 of 3 interactions changed, 25.1 kB before, 226.4 kB now" in done.stdout
    assert not list(demo.glob("*.zst"))
    assert invoke("diff", DEMO, demo).stdout.count("equal") == 3
    invoke("verify", demo)
    assert loaded("pack", demo)["changed"] == 3
    assert contents(demo) == before


@pytest.mark.parametrize(("kind", "command"), [("plain", "pack"), ("zstd", "unpack")])
def test_any_value_survives(kind, command, tmp_path):
    """And its digest, omissions, random states and metadata."""
    path = shutil.copytree(DEMO.parent / "format-v1" / kind, tmp_path / "c")
    invoke(command, path)
    old, new = (
        rc.open_cassette(DEMO.parent / "format-v1" / kind, numpy=True),
        rc.open_cassette(path),
    )
    for one, other in zip(
        old.interactions(), rc.open_cassette(path, numpy=True).interactions(), strict=True
    ):
        assert repr(one.request) == repr(other.request)
        assert digest_of(one) == digest_of(other)
        assert one.manifest.metadata == other.manifest.metadata
    assert new.keys == old.keys


def digest_of(interaction):
    """Hash the tensors by name, and the skeletons."""
    tensors = {name: bytes(each.data) for name, each in interaction.tensors.items()}
    return digest([tensors, interaction.manifest.trees.unpack()])


def test_a_plain_file_is_opened_by_any_reader(demo):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    invoke("unpack", demo)
    tensors = load_file(demo / "step-000002.safetensors")
    assert tensors["response/data/responses/values"].shape == (807,)


def test_what_is_packed_is_left_alone(demo):
    before = contents(demo)
    assert loaded("pack", demo)["changed"] == 0
    assert contents(demo) == before


def test_a_damaged_file_stays_as_it_is(demo):
    """And what comes before it is done."""
    path = demo / "step-000002.safetensors.zst"
    path.write_bytes(path.read_bytes()[:-1])
    before = path.read_bytes()
    assert "is damaged" in invoke("unpack", demo, status=1).stderr
    assert path.read_bytes() == before
    assert (demo / "step-000001.safetensors").exists()


@pytest.mark.parametrize("moment", range(2))
def test_it_is_whole_whenever_it_is_interrupted(moment, demo):
    """Whichever renaming is the last that was done: the manifest names a file that is there."""
    replace, done = Path.replace, []

    def interrupted(self, target):
        if len(done) == moment:
            raise KeyboardInterrupt
        done.append(target)
        return replace(self, target)

    with (
        mock.patch.object(Path, "replace", interrupted),
        Writer(demo, None) as writer,
        pytest.raises(KeyboardInterrupt),
    ):
        repack(rc.open_cassette(demo)[1], writer)
    assert invoke("diff", DEMO, demo).stdout.count("equal") == 3
    invoke("unpack", demo)
    assert sorted(file.name for file in demo.glob("step-000001*")) == [
        "step-000001.msgpack",
        "step-000001.safetensors",
    ]


def test_a_cassette_that_is_written_to_is_left_alone(demo):
    with Writer(demo):
        assert "open for writing in another session" in invoke("unpack", demo, status=1).stderr
    assert contents(demo) == contents(DEMO)


def test_where_there_is_nothing_nothing_is_made(tmp_path):
    assert "There is no cassette" in invoke("pack", tmp_path / "none", status=1).stderr
    assert list(tmp_path.iterdir()) == []
