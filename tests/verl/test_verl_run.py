"""What can't go together with a with-block is refused when it starts."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.overrides import COLOCATE_ASYNC

pytestmark = pytest.mark.verl


def skipping(section, directory):
    return (
        f"skip.{section}.enable=True",
        f"skip.{section}.dump_dir={directory}",
        f"skip.{section}.steps=[1]",
    )


@pytest.fixture
def restored_skip_manager():
    """verl keeps what it was configured with in the class."""
    from verl.utils.skip import SkipManager

    yield
    SkipManager.config, SkipManager.step, SkipManager.skip_instances = None, -1, {}


@pytest.mark.usefixtures("restored_skip_manager")
@pytest.mark.parametrize("session", [rc.record, rc.replay])
@pytest.mark.parametrize("mode", [(), COLOCATE_ASYNC], ids=["sync", "colocate"])
def test_verls_own_skipping_conflicts(train, tmp_path, session, mode):
    """At the start of the run, before a prompt is handed out."""
    with rc.record(path=tmp_path / "c"):
        train(1, mode)
    options = {"on_existing": "skip"} if session is rc.record else {}
    with (
        session(path=tmp_path / "c", **options),
        pytest.raises(rc.CassetteError, match=r"skip\.rollout_tq is enabled") as caught,
    ):
        train(1, (*mode, *skipping("rollout_tq", tmp_path / "dumps")))
    assert "skip.rollout_tq.enable=False" in str(caught.value)
    assert not (tmp_path / "dumps").exists()


@pytest.mark.usefixtures("restored_skip_manager")
def test_another_section_does_not_conflict(train, tmp_path):
    """The V1 trainer doesn't use the one of the V0 trainers; their adapters refuse it."""
    from rollout_cassettes.adapters import registered

    v1 = registered()["verl_v1"]
    overrides = skipping("rollout", tmp_path / "dumps")
    with rc.record(path=tmp_path / "c", adapters=v1) as session:
        train(1, overrides)
    assert session.recorded == [1]
    with rc.record(path=tmp_path / "d"), pytest.raises(rc.CassetteError, match=r"skip\.rollout is"):
        train(1, overrides)


def test_a_with_block_around_run_ppo_is_refused(tmp_path):
    """The trainer would run in a Ray actor; nothing is started."""
    import ray
    from verl.trainer import main_ppo

    with rc.record(path=tmp_path / "c"), pytest.raises(rc.CassetteError) as caught:
        main_ppo.run_ppo(config=None, task_runner_class=main_ppo.TaskRunnerV1)
    for way in ("rollout-cassettes run", "+cassettes.mode=record", "task runner of your own"):
        assert way in str(caught.value)
    assert not ray.is_initialized()


def test_run_ppo_imported_by_name_is_refused_too(tmp_path, assets):
    """The script has the original function: what it calls is guarded."""
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    from rollout_cassettes.demo.config import compose_config

    with rc.record(path=tmp_path / "c"), pytest.raises(rc.CassetteError, match="in a Ray actor"):
        run_ppo(compose_config(assets, 1), task_runner_class=TaskRunnerV1)
    assert not ray.is_initialized()


def test_a_session_without_an_adapter_for_verl_does_not_mind(tmp_path):
    """Only who would be in vain is told."""
    from verl.trainer import main_ppo

    own = rc.adapters.function(f"{__name__}:skipping")
    with rc.record(path=tmp_path / "c", adapters=own), pytest.raises(AttributeError):
        main_ppo.run_ppo(config=None, task_runner_class=None)
