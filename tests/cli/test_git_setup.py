"""The command `git-setup`, with a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.cli.program import DEMO, invoke, loaded
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Run git in a repository of its own, with nobody's configuration."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def call(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        done = subprocess.run(
            ["git", *identity, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    call("init", "--quiet")
    return call


def test_git_diff_shows_cassettes_as_text(git, tmp_path):
    """A changed step as changed lines: which token is another now."""
    path = shutil.copytree(DEMO, tmp_path / "cassettes" / "demo")
    assert "Commit cassettes/.gitattributes" in invoke("git-setup").stdout
    git("add", ".")
    git("commit", "--quiet", "-m", "Record")
    for suffix in (".msgpack", ".safetensors.zst"):
        shutil.copy(path / f"step-000002{suffix}", path / f"step-000001{suffix}")
    difference = git("diff")
    assert "Binary files" not in difference
    assert "-step  1" in difference
    assert "+step  2" in difference
    assert "-response/data/responses/values  i64[982]" in difference
    assert "+response/data/responses/values  i64[807]" in difference


def test_what_is_no_cassette_leaves_the_other_changes_to_be_seen(git, tmp_path):
    """A pointer of Git LFS, damage, a format that is newer: git would stop at the first of them."""
    path = shutil.copytree(DEMO, tmp_path / "cassettes" / "demo")
    invoke("git-setup")
    git("add", ".")
    git("commit", "--quiet", "-m", "Record")
    for suffix in (".msgpack", ".safetensors.zst"):
        (path / f"step-000001{suffix}").write_text("version https://git-lfs.github.com/spec/v1\n")
    shutil.copy(path / "step-000002.msgpack", path / "step-000003.msgpack")
    difference = git("diff")
    assert "+step-000001.msgpack is damaged: " in difference
    assert "+step-000001.safetensors.zst is damaged: " in difference
    assert "-step  3" in difference


def test_it_can_be_run_again_and_keeps_what_is_there(git, tmp_path):
    (tmp_path / "mine").mkdir()
    attributes = tmp_path / "mine" / ".gitattributes"
    attributes.write_text("*.png binary")
    first = loaded("git-setup", "mine")
    text = attributes.read_text()
    assert text.splitlines()[0] == "*.png binary"
    assert len(text.splitlines()) == 4
    assert loaded("git-setup", "mine") == first
    assert attributes.read_text() == text
    assert (
        git("check-attr", "diff", "mine/step-000001.msgpack").strip().endswith("rollout-cassette")
    )
    assert git("config", "diff.rollout-cassette.textconv").strip() == first["textconv"]


def test_other_files_are_left_alone(git, tmp_path):
    """A model's checkpoint outside the directory may be called as it likes."""
    (tmp_path / "cassettes").mkdir()
    invoke("git-setup")
    assert "unspecified" in git("check-attr", "diff", "step-000001.safetensors")


def test_it_needs_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a git repository" in invoke("git-setup", tmp_path, status=1).stderr
    assert "There is no directory" in invoke("git-setup", tmp_path / "x", status=1).stderr
    assert list(tmp_path.iterdir()) == []
