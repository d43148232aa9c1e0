"""Cassettes of version 1 stay readable: the frozen ones, to the bit."""

from __future__ import annotations

import subprocess
import sys

import msgpack
import pytest

from rollout_cassettes import open_cassette
from rollout_cassettes.cassette import Key
from tests.cassette import make_format_v1 as frozen
from tests.cassette.sameness import assert_same

PACKING = {"unicode_errors": "surrogatepass"}
KEYS = list(frozen.RESPONSES)


@pytest.mark.parametrize("name", frozen.COMPRESSIONS)
def test_the_frozen_cassettes_hold_what_was_recorded(name):
    """Every interaction is there, under its step, phase, index and rank, and verifies."""
    cassette = open_cassette(frozen.DIRECTORY / name)
    assert cassette.keys == sorted(KEYS)
    for interaction in cassette.interactions():
        interaction.verify()
        assert interaction.manifest.key == interaction.key
        assert interaction.manifest.metadata == {"note": "frozen"}
        assert interaction.request == frozen.REQUEST


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("name", frozen.COMPRESSIONS)
def test_the_frozen_values_read_as_they_were(name, key):
    """Bit by bit, dtype by dtype, container by container."""
    interaction = open_cassette(frozen.DIRECTORY / name).interaction(key)
    assert_same(frozen.RESPONSES[key](), interaction.response)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_the_frozen_values_read_without_torch(key):
    """With `numpy=True`, whatever they hold."""
    assert (
        open_cassette(frozen.DIRECTORY / "zstd", numpy=True).interaction(key).response is not None
    )


@pytest.mark.parametrize("name", frozen.COMPRESSIONS)
def test_what_is_written_today_is_what_was_frozen(name, tmp_path):
    """The skeletons and the tensors' bytes: a change of the format shows here first."""
    frozen.make(tmp_path / "now", frozen.COMPRESSIONS[name])
    then, now = open_cassette(frozen.DIRECTORY / name), open_cassette(tmp_path / "now")
    for key in KEYS:
        before, after = then.interaction(key), now.interaction(key)
        trees = before.manifest.trees.unpack(), after.manifest.trees.unpack()
        assert msgpack.packb(trees[0], **PACKING) == msgpack.packb(trees[1], **PACKING)
        assert before.tensors.keys() == after.tensors.keys()
        if frozen.RESPONSES[key] is frozen.image:  # PNG encoders differ, what they encode doesn't
            continue
        for path in before.tensors:
            assert before.tensors[path].data == after.tensors[path].data


def test_the_frozen_cassettes_are_not_made_again():
    """The script refuses, and changes nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cassette.make_format_v1"],
        cwd=frozen.DIRECTORY.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "frozen" in done.stderr


def test_they_are_small():
    """They are committed."""
    sizes = [file.stat().st_size for file in frozen.DIRECTORY.rglob("*") if file.is_file()]
    assert len(sizes) == 4 * len(KEYS)
    assert sum(sizes) < 100_000


def test_a_key_is_found_in_the_name_of_its_file():
    """As the page on the format says."""
    names = {file.name for file in (frozen.DIRECTORY / "plain").iterdir()}
    assert f"{Key(5, 'val', 1, 3).stem}.msgpack" == "step-000005.val.1.rank3.msgpack"
    assert {"step-000001.msgpack", "step-000005.val.1.rank3.safetensors"} <= names
