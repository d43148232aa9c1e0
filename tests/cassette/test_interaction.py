"""One interaction: read lazily, and only where it can be trusted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.packed import Packed
from tests.cassette.recording import record


@pytest.fixture
def plain(tmp_path):
    """An uncompressed interaction with two tensors."""
    response = {"first": torch.arange(1000), "second": torch.arange(1000) * 2}
    return record(tmp_path / "c", response, {"prompt": [1]}, compression=None)


def reopened(interaction):
    """Give the same interaction, unread."""
    return rc.open_cassette(interaction.path.parent).interaction(interaction.key)


def test_request_and_response_come_back(plain):
    """In the containers that were recorded, and the same object at each look."""
    assert plain.request == {"prompt": [1]}
    assert torch.equal(plain.response["second"], torch.arange(1000) * 2)
    assert plain.response is plain.response
    assert plain.nbytes == sum(file.stat().st_size for file in plain.path.parent.iterdir())


def test_only_the_tensor_that_is_asked_for_is_read(plain):
    """The bytes of the other one may be damaged; the whole is not taken then."""
    file = plain.path.with_name(plain.manifest.tensors.file)
    data = bytearray(file.read_bytes())
    place = data.index(torch.arange(1000).numpy().tobytes())
    data[place : place + 8] = b"\xff" * 8
    file.write_bytes(data)
    again = reopened(plain)
    assert again.tensors["response/second"].numpy()[3] == 6
    with pytest.raises(rc.CassetteCorruptError):
        again.verify()


def test_the_tensors_are_a_mapping(plain):
    """By path, without reading them."""
    assert sorted(plain.tensors) == ["response/first", "response/second"]
    assert plain.tensors["response/first"].shape == (1000,)


@pytest.mark.parametrize("compression", ["zstd", None])
def test_changing_what_was_read_changes_no_file(tmp_path, compression):
    """And not what is read next."""
    interaction = record(tmp_path / "c", torch.zeros(3), compression=compression)
    interaction.response[0] = 7
    again = reopened(interaction)
    again.verify()
    assert again.response.tolist() == [0.0, 0.0, 0.0]


def test_a_renamed_interaction_is_refused(plain):
    """Its manifest says what it is."""
    for file in list(plain.path.parent.iterdir()):
        shutil.copy(file, file.with_name(file.name.replace("step-000001", "step-000002")))
    with pytest.raises(rc.CassetteCorruptError, match="renamed"):
        _ = rc.open_cassette(plain.path.parent)[2].response


@pytest.mark.parametrize("name", ["/etc/passwd", "../step-000001.safetensors", "other.safetensors"])
def test_a_manifest_can_not_point_elsewhere(tmp_path, name):
    """Its tensors are beside it, under its own name."""
    interaction = record(tmp_path / "c", torch.ones(1), compression=None)
    entry = interaction.manifest.tensors
    manifest = replace(interaction.manifest, tensors=replace(entry, file=name))
    interaction.path.write_bytes(manifest.to_bytes())
    with pytest.raises(rc.CassetteCorruptError, match="tensors file"):
        _ = reopened(interaction).response


@pytest.mark.parametrize("name", ["request", "response"])
def test_a_manifest_that_lacks_a_part_is_damaged(tmp_path, name):
    """Also where someone who altered the file wrote the right hash into it."""
    interaction = record(tmp_path / "c", 1)
    trees = {part: tree for part, tree in interaction.skeletons.items() if part != name}
    manifest = replace(interaction.manifest, trees=Packed.pack(trees, None))
    interaction.path.write_bytes(manifest.to_bytes())
    with pytest.raises(rc.CassetteCorruptError, match=f"lacks the {name}"):
        _ = reopened(interaction).response
    with pytest.raises(rc.CassetteCorruptError, match=f"lacks the {name}"):
        rc.shrink(tmp_path / "c", tmp_path / "small")


@pytest.mark.parametrize("states", [None, [], {"whole": None}, {"whole": []}], ids=repr)
def test_random_states_that_are_none_are_damage(tmp_path, states):
    interaction = record(tmp_path / "c", 1)
    trees = {**interaction.skeletons, "random_state": states}
    manifest = replace(interaction.manifest, trees=Packed.pack(trees, None))
    interaction.path.write_bytes(manifest.to_bytes())
    with pytest.raises(rc.CassetteCorruptError, match="no map of states"):
        _ = reopened(interaction).random_state


def test_a_manifest_that_is_gone_is_said_to_be_gone(plain):
    """Since the cassette was opened."""
    again = reopened(plain)
    plain.path.unlink()
    with pytest.raises(rc.CassetteCorruptError, match="gone"):
        _ = again.response


def test_a_device_can_be_asked_for(tmp_path):
    """Where tensors go; "meta" is a device that every machine has."""
    record(tmp_path / "c", torch.ones(3))
    response = rc.open_cassette(tmp_path / "c", device="meta")[1].response
    assert response.device.type == "meta"


def test_numpy_gives_plain_containers(plain):
    """Without the libraries of the batch."""
    response = rc.open_cassette(plain.path.parent, numpy=True)[1].response
    assert type(response["second"]) is np.ndarray
    assert response["second"].tolist() == (torch.arange(1000) * 2).tolist()


def test_reading_with_numpy_imports_neither_torch_nor_a_framework(tmp_path):
    """In a process of its own: manifest, request, response, single tensors."""
    from tensordict import TensorDict

    record(tmp_path / "c", {"batch": TensorDict({"x": torch.ones(2, 3)}, [2])}, {"n": 1})
    code = """
import sys
import rollout_cassettes as rc
interaction = rc.open_cassette(sys.argv[1], numpy=True)[1]
assert interaction.manifest.step_kind == "call"
assert interaction.request == {"n": 1}
assert interaction.response["batch"]["x"].sum() == 6
assert interaction.tensors["response/batch/x"].shape == (2, 3)
interaction.verify()
heavy = {"torch", "tensordict", "verl", "ray", "transformers", "safetensors"} & sys.modules.keys()
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "c"], check=True)


def test_it_shows_what_it_is(plain):
    """Its place and its cassette."""
    assert repr(plain) == f"<Interaction {Key(1)} of {plain.path.parent}>"
