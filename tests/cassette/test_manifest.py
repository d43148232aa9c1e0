"""The manifest: what it says, and that it can be trusted."""

from __future__ import annotations

import hashlib

import msgpack
import pytest

from rollout_cassettes import CassetteCorruptError, CassetteError, CassetteVersionError
from rollout_cassettes.cassette import Key, Manifest, Omission
from tests.cassette.recording import record


@pytest.fixture
def interaction(tmp_path):
    """A recorded interaction."""
    return record(tmp_path / "c", {"x": 1}, {"prompt": "日本語"}, metadata={"git": "abc"})


@pytest.fixture
def rewrite(interaction):
    """Change the manifest's entries and give it a right hash again; read it."""

    def change(**entries):
        data = interaction.path.read_bytes()
        before = msgpack.unpackb(data, strict_map_key=False)
        changed = {k: v for k, v in {**before, **entries}.items() if v is not ...}
        blank = msgpack.packb({**changed, "sha256": bytes(32)})
        digest = hashlib.sha256(blank).digest()
        return Manifest.from_bytes(msgpack.packb({**changed, "sha256": digest}), interaction.path)

    return change


def test_it_comes_back_as_it_was(interaction):
    """Through bytes, every entry."""
    manifest = interaction.manifest
    assert Manifest.from_bytes(manifest.to_bytes(), interaction.path) == manifest
    assert manifest.key == Key(1)
    assert manifest.metadata == {"git": "abc"}
    assert manifest.seconds == 1.5


def test_any_msgpack_reader_reads_it(interaction):
    """One map, that starts with its own hash."""
    entries = msgpack.unpackb(interaction.path.read_bytes())
    assert list(entries)[:3] == ["sha256", "format", "version"]
    assert (entries["format"], entries["version"]) == ("rollout_cassettes", 1)


def test_omissions_come_back(tmp_path):
    """Named by path, type and reason."""
    omissions = [Omission("response/tool", "acme.Tool", "no codec knows this type")]
    assert record(tmp_path / "c", 1, omissions=omissions).manifest.omissions == omissions


def test_every_altered_byte_is_noticed(interaction):
    """One bit, anywhere in the file."""
    data = interaction.path.read_bytes()
    for place in range(len(data)):
        altered = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(CassetteError):
            Manifest.from_bytes(altered, interaction.path)


def test_every_truncation_is_noticed(interaction):
    """And a byte too many."""
    data = interaction.path.read_bytes()
    for size in range(len(data)):
        with pytest.raises(CassetteCorruptError):
            Manifest.from_bytes(data[:size], interaction.path)
    with pytest.raises(CassetteCorruptError):
        Manifest.from_bytes(data + b"\0", interaction.path)


def test_a_newer_version_is_said_to_be_newer(rewrite, interaction):
    """With the version found, the newest known, and what to do."""
    with pytest.raises(CassetteVersionError) as caught:
        rewrite(version=2)
    assert (caught.value.found, caught.value.known) == (2, 1)
    assert caught.value.path == interaction.path
    assert "pip install --upgrade" in str(caught.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"format": "another"},
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"step": ...},
        {"step": "1"},
        {"step": True},
        {"extra": 1},
        {"tensors": None},
        {"tensors": {}},
        {"trees": [1]},
        {"versions": {"python": 3}},
        {"fingerprint": [b"bytes"]},
        {"omissions": [["path", "type"]]},
        {"omissions": 1},
    ],
    ids=repr,
)
def test_wrong_entries_are_damage(rewrite, entries):
    """Even under a right hash."""
    with pytest.raises(CassetteCorruptError):
        rewrite(**entries)


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\x81\xa1a\x01", msgpack.packb([1])])
def test_what_is_no_manifest_is_damage(tmp_path, data):
    """An empty file, another msgpack file."""
    with pytest.raises(CassetteCorruptError, match="no whole manifest"):
        Manifest.from_bytes(data, tmp_path / "step-000001.msgpack")
