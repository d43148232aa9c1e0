"""The task runner of docs/verl.md, as a user runs it: by verl's `run_ppo`, in a Ray actor."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rollout_cassettes as rc
from tests.docs.blocks import ROOT, Page

TIMEOUT = 1200  # seconds

#: What the page takes for granted: a machine that verl can train on, and verl's configuration.
PREPARATION = """\
import os
from pathlib import Path

from rollout_cassettes.demo.environment import environment

root = Path({root!r})
os.environ.update(environment(root))

from rollout_cassettes.demo.assets import make_assets
from rollout_cassettes.demo.config import compose_config
from rollout_cassettes.demo.training import local_cluster

overrides = ["trainer.val_before_train=False", "trainer.test_freq=-1"]
config = compose_config(make_assets(root), 1, overrides)
with local_cluster():
    exec(compile({block!r}, "docs/verl.md", "exec"))
"""


@pytest.mark.verl
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.skipif(find_spec("verl") is None, reason="needs verl")
def test_the_task_runner_of_the_page_records(tmp_path):
    """The with-block is opened in the actor that runs the trainer, and records there."""
    block = Page.read(Path("docs/verl.md")).named("task runner").text
    cassette = tmp_path / "cassette"
    assert "/shared/cassettes/gsm8k-tiny" in block
    block = block.replace("/shared/cassettes/gsm8k-tiny", str(cassette))
    script = tmp_path / "train.py"
    script.write_text(PREPARATION.format(root=str(tmp_path), block=block))
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,  # verl's file logger writes where it is started
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert rc.open_cassette(cassette).steps == [1]
