"""The command `verify`."""

from __future__ import annotations

import pytest

from tests.cli.program import invoke, loaded


def test_a_sound_cassette_is_said_to_be_sound(demo):
    assert f"{demo}: 3 interactions, 25.1 kB, sound" in invoke("verify", demo).stdout
    assert loaded("verify", demo)["sound"] is True


@pytest.mark.parametrize("name", ["step-000002.msgpack", "step-000002.safetensors.zst"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "empty"])
def test_each_damaged_file_is_named(damage, name, demo):
    """A single bit is enough."""
    path = demo / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"flipped": data, "cut": data[:-1], "longer": data + b"x"}.get(damage, b""))
    done = invoke("verify", demo, status=1)
    assert "1 damaged" in done.stdout
    (line,) = done.stderr.splitlines()
    assert str(path) in line
    report = loaded("verify", demo, status=1)
    assert [each["path"] for each in report["cassettes"][0]["damage"]] == [str(path)]


def test_a_missing_tensors_file_is_damage(demo):
    path = demo / "step-000002.safetensors.zst"
    path.unlink()
    assert f"{path} is damaged: the file is missing" in invoke("verify", demo, status=1).stderr


def test_a_newer_format_is_named(demo):
    """Nothing is wrong with the file; this version can't read it."""
    from rollout_cassettes.cassette import manifest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "VERSION", 99)
        path = demo / "step-000001.msgpack"
        path.write_bytes(manifest.Manifest.from_bytes(path.read_bytes(), path).to_bytes())
    assert "version 99 of the cassette format" in invoke("verify", demo, status=1).stderr


def test_what_an_interrupted_recording_left_is_a_warning(demo):
    (demo / "step-000003.msgpack").unlink()
    done = invoke("verify", demo)
    assert "step-000003.safetensors.zst has no manifest" in done.stderr
    assert "2 interactions" in done.stdout


def test_all_cassettes_below_a_directory_are_checked(demo, tmp_path, record, texts):
    record("other", texts)
    (demo / "step-000001.msgpack").write_bytes(b"")
    report = loaded("verify", tmp_path, status=1)
    assert [len(each["damage"]) for each in report["cassettes"]] == [1, 0]


def test_other_versions_than_here_are_told(demo, record, texts):
    """What they are is in the manifests; it is no error."""
    (report,) = loaded("verify", demo)["cassettes"]
    assert report["recorded_with"]["verl"] == ["0.9.1"]
    assert set(report["installed"]) == set(report["recorded_with"]) - {"python"}
    assert "recorded with" not in invoke("verify", record("mine", texts)).stdout


def test_where_there_is_nothing_to_verify(tmp_path):
    assert "holds no recorded step" in invoke("verify", tmp_path, status=1).stderr
