"""`python -m verl.trainer.main_ppo`, recorded and replayed with no line of code changed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import rollout_cassettes as rc
from tests.docs.blocks import Page
from tests.verl.comparison import untimed

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.slow]

PAGE = Page.read(Path("docs/verl.md"))


@pytest.fixture(scope="module")
def runs(assets, tmp_path_factory):
    """Record by command line, then replay by Hydra keys: the page's commands, in one directory."""
    from tests.verl.main_ppo import overrides, run

    directory, caches = tmp_path_factory.mktemp("main_ppo"), tmp_path_factory.mktemp("caches")
    live, again = (
        run(PAGE.named(name).text.replace("KEY=VALUE ...", shlex.join(keys)), directory, caches)
        for name, keys in {
            "command line": overrides(assets, steps=3),
            "hydra keys": [*overrides(assets, steps=3), "+cassettes.engines=off"],
        }.items()
    )
    return live, again, directory / "cassettes" / "gsm8k-tiny"


@pytest.fixture(scope="module")
def v0_runs(assets, tmp_path_factory):
    """The same with verl's V0 trainer: recorded by Hydra keys, and replayed by command line."""
    from tests.verl.main_ppo import overrides, run

    directory, caches = tmp_path_factory.mktemp("v0"), tmp_path_factory.mktemp("caches")
    keys = shlex.join([*overrides(assets, steps=2), "trainer.use_v1=False"])
    recorded = run(
        f"python -m verl.trainer.main_ppo {keys} +cassettes.mode=record +cassettes.path=c",
        directory,
        caches,
    )
    replayed = run(
        "rollout-cassettes run --replay c --engines off --on-unplayed error "
        f"-- python -m verl.trainer.main_ppo {keys}",
        directory,
        caches,
    )
    return recorded, replayed, directory / "c"


def test_the_v0_trainer_is_recorded_and_replayed_too(v0_runs):
    """`RayPPOTrainer.fit`, in its own Ray actor, with the engine left out of the replay."""
    live, again, cassette = v0_runs
    assert live.status == 0, live.output[-5000:]
    assert again.status == 0, again.output[-5000:]
    assert {each.manifest.adapter for each in rc.open_cassette(cassette)} == {"verl_v0"}
    assert f"{cassette}: 2 steps replayed, 0 generated live" in again.logs
    assert "_initialize_llm_servers is not called: the engine is off" in again.output
    assert sorted(again.metrics) == [1, 2]
    assert untimed(again.metrics) == untimed(live.metrics)


def test_the_command_line_records(runs):
    """In the actor that runs the trainer, under the directory in which the command was started."""
    live, _, cassette = runs
    assert live.status == 0, live.output[-5000:]
    assert rc.open_cassette(cassette).steps == [1, 2, 3]
    assert f"recording steps 1-3 to {cassette}" in live.output
    assert f"{cassette}: 3 steps recorded" in live.logs


def test_hydra_keys_replay(runs):
    """Nothing is generated, and all that verl logs is what it was; the engine isn't started."""
    live, again, cassette = runs
    assert again.status == 0, again.output[-5000:]
    assert f"replaying steps 1-3 from {cassette}" in again.output
    assert f"{cassette}: 3 steps replayed, 0 generated live" in again.logs
    assert (
        "LLMServerManager._initialize_llm_servers is not called: the engine is off" in again.output
    )
    assert sorted(again.metrics) == [1, 2, 3]
    assert untimed(again.metrics) == untimed(live.metrics)


def test_the_lines_come_from_the_actor(runs):
    """Ray hands on what an actor writes, with the actor's name before it."""
    for run in runs[:2]:
        (start,) = (line for line in run.output.splitlines() if " steps 1-3 " in line)
        assert "TaskRunnerV1" in start
