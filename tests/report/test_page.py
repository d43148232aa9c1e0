"""The file, as it is written: whole, closed to the network, and part of the distribution."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from rollout_cassettes.report.page import SCRIPTS
from tests.docs.blocks import ROOT
from tests.report.runs import HOSTILE

ASSETS = ROOT / "rollout_cassettes" / "report" / "assets"


def test_the_page_names_its_own_script_and_style_alone(reports):
    """By their hashes; all else that it holds is data, and no markup of a model's is in it."""
    text = (reports / "both.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for name, part in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert HOSTILE not in text
    assert "<b>bold" not in text
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}


def test_every_script_is_in_the_page():
    assert {path.stem for path in ASSETS.glob("*.js")} == set(SCRIPTS)


def test_the_wheel_has_the_assets(tmp_path, monkeypatch):
    build = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        held = {Path(name).name for name in wheel.namelist() if "report/assets/" in name}
    assert held == {path.name for path in ASSETS.iterdir()}
