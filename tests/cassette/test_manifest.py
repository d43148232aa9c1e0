"""Manifests: everything but the tensors, and the commit record."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.cassette import Key, Omission
from rollout_cassettes.cassette.manifest import FORMAT, VERSION, Manifest, TensorsFile
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.errors import CassetteCorruptError, CassetteError, CassetteVersionError

PATH = Path("cassettes/run/step-000002.val.1.rank3.msgpack")

MANIFEST = Manifest(
    step=2,
    step_kind="trainer step",
    phase="val",
    index=1,
    rank=3,
    adapter="verl_v1",
    entry_point="module:Class.function",
    versions={"python": "3.11.7"},
    tensors=TensorsFile("step-000002.val.1.rank3.safetensors.zst", 10, "0" * 64, "zstd", 20),
    trees=Packed.pack({"request": None, "response": {"$": "tuple", "items": []}}, None),
    fingerprint=["a", "b"],
    omissions=[Omission("response/a", "builtins.object", "\ud800")],
    recorded_at="2026-01-02T03:04:05.678+00:00",
    host="somewhere",
    seconds=1.5,
    metadata={"git": "abc", "nested": {"$": "tuple", "items": [1]}},
)


def altered(**entries):
    """Return the bytes of a manifest with other entries, and the right digest."""
    return signed(
        {**msgpack.unpackb(MANIFEST.to_bytes(), unicode_errors="surrogatepass"), **entries}
    )


def signed(entries):
    blank = msgpack.packb({**entries, "sha256": bytes(32)}, unicode_errors="surrogatepass")
    return blank.replace(bytes(32), hashlib.sha256(blank).digest(), 1)


def read(data):
    return Manifest.from_bytes(data, PATH)


def test_a_manifest_comes_back_the_same():
    assert read(MANIFEST.to_bytes()) == MANIFEST


@given(
    st.builds(
        replace,
        st.just(MANIFEST),
        step=st.integers(0, 10**18 - 1),
        host=st.text(),
        fingerprint=st.none() | st.lists(st.text(), max_size=20),
        seconds=st.floats(0, 10**9),
        versions=st.dictionaries(st.text(), st.text(), max_size=3),
        metadata=st.dictionaries(st.text(), st.lists(st.integers(-9, 9)), max_size=3),
    )
)
def test_any_manifest_comes_back_the_same(manifest):
    """However long it is: the head of a msgpack map grows with it."""
    assert read(manifest.to_bytes()) == manifest


def test_its_key_is_its_place_in_the_cassette():
    assert MANIFEST.key == Key(2, "val", 1, 3)


def test_it_starts_with_its_hash_its_format_and_its_version():
    entries = msgpack.unpackb(MANIFEST.to_bytes(), unicode_errors="surrogatepass")
    assert list(entries)[:3] == ["sha256", "format", "version"]
    assert (entries["format"], entries["version"]) == (FORMAT, VERSION) == ("rollout_cassettes", 1)


def test_an_altered_byte_is_noticed_wherever_it_is():
    data = MANIFEST.to_bytes()
    for place in range(len(data)):
        for bit in (1, 0x80):
            broken = bytearray(data)
            broken[place] ^= bit
            with pytest.raises(CassetteCorruptError, match="is damaged: it is no whole manifest"):
                read(bytes(broken))


def test_a_manifest_that_was_cut_short_is_noticed_wherever_it_was():
    data = MANIFEST.to_bytes()
    for size in range(len(data)):
        with pytest.raises(CassetteCorruptError):
            read(data[:size])


def test_bytes_behind_the_manifest_are_noticed():
    with pytest.raises(CassetteCorruptError):
        read(MANIFEST.to_bytes() + b"\0")


@given(st.binary(max_size=40))
def test_any_bytes_raise_nothing_but_our_errors(data):
    with pytest.raises(CassetteError):
        read(data)


def test_damage_says_which_file_and_what_to_do():
    with pytest.raises(CassetteCorruptError) as caught:
        read(b"")
    assert caught.value.path == PATH
    assert str(PATH) in str(caught.value)
    assert "record it again" in str(caught.value)


@pytest.mark.parametrize("version", [2, 10**9])
def test_a_newer_version_is_named_whatever_else_changed(version):
    with pytest.raises(CassetteVersionError, match=f"version {version} of the cassette") as caught:
        read(signed({"sha256": bytes(32), "format": FORMAT, "version": version, "new": 1}))
    assert (caught.value.found, caught.value.known, caught.value.path) == (version, 1, PATH)
    assert "pip install --upgrade" in str(caught.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"format": "vcr"},
        {"version": 0},
        {"version": -1},
        {"version": True},
        {"version": "1"},
        {"version": 1.0},
        {"version": None},
        {"step": "2"},
        {"step": True},
        {"phase": 1},
        {"versions": {"python": 3}},
        {"tensors": None},
        {"tensors": {}},
        {"tensors": {"file": "a", "size": "1", "sha256": "", "compression": None, "raw_size": 1}},
        {"trees": {"compression": None, "raw_size": 0, "data": "text"}},
        {"trees": []},
        {"fingerprint": "ab"},
        {"omissions": 1},
        {"omissions": [1]},
        {"omissions": [["a"]]},
        {"seconds": None},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": 2**60},
        {"recorded_at": "yesterday"},
        {"recorded_at": "2026-01-02T03:04:05"},
        {"metadata": []},
        {"unknown": 1},
        {1: 1},
    ],
    ids=str,
)
def test_an_entry_that_makes_no_sense_is_damage(entries):
    """Also where someone who altered the file wrote the right hash into it."""
    with pytest.raises(CassetteCorruptError):
        read(altered(**entries) if all(type(key) is str for key in entries) else signed(entries))


def test_an_unsigned_manifest_is_damage():
    entries = msgpack.unpackb(MANIFEST.to_bytes(), unicode_errors="surrogatepass")
    del entries["sha256"]
    with pytest.raises(CassetteCorruptError):
        read(msgpack.packb(entries, unicode_errors="surrogatepass"))
