"""What can't go together with a with-block is refused when it starts."""

from __future__ import annotations

import asyncio

import pytest

import rollout_cassettes as rc
from tests.verl.overrides import COLOCATE_ASYNC, NO_VALIDATION, VALIDATION
from tests.verl.skip_manager import kept_apart, skipping

pytestmark = pytest.mark.verl


@pytest.fixture(autouse=True)
def skip_manager():
    """Leave nothing of its state to other tests."""
    with kept_apart() as manager:
        yield manager


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


def test_another_section_does_not_conflict(train, tmp_path):
    """The one of the V0 trainers does nothing in V1."""
    with rc.record(path=tmp_path / "c") as session:
        train(1, skipping("rollout", tmp_path / "dumps"))
    assert session.recorded == [1]
    assert not (tmp_path / "dumps").exists()


@pytest.mark.parametrize("section", ["rollout", "async_rollout"])
def test_v0_and_fully_asynchronous_trainers_conflict_with_their_sections(assets, tmp_path, section):
    """Before their own `fit` does anything; here they have nothing but a configuration."""
    from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    from rollout_cassettes.demo.config import compose_config

    rollouter = FullyAsyncRollouter.__ray_metadata__.modified_class
    trainer = object.__new__(RayPPOTrainer if section == "rollout" else rollouter)
    trainer.config = compose_config(assets, 1, skipping(section, tmp_path / "dumps"))
    refused = pytest.raises(rc.CassetteError, match=rf"skip\.{section} is enabled")
    with rc.record(path=tmp_path / "c"), refused:
        asyncio.run(trainer.fit()) if section == "async_rollout" else trainer.fit()


def test_the_section_of_fully_asynchronous_training_does_nothing_in_v0(assets, tmp_path):
    """A V0 training with it goes on, into its own `fit`."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    from rollout_cassettes.demo.config import compose_config

    trainer = object.__new__(RayPPOTrainer)
    trainer.config = compose_config(assets, 1, skipping("async_rollout", tmp_path / "dumps"))
    trainer.total_training_steps = 1
    with rc.record(path=tmp_path / "c") as session, pytest.raises(AttributeError):
        trainer.fit()  # which misses what this trainer was not given
    assert session.refusal is None


def test_who_merely_sets_skip_manager_up_is_not_refused(assets, tmp_path, skip_manager):
    """As verl's own tests of it do: no rollout of a trainer's is answered twice."""
    from rollout_cassettes.demo.config import compose_config

    config = compose_config(assets, 1, skipping("rollout_tq", tmp_path / "dumps"))
    with rc.record(path=tmp_path / "c"):
        skip_manager.init(config)
    assert skip_manager.skip_instances["rollout_tq"].is_enabled()


def test_a_with_block_around_run_ppo_is_refused(tmp_path):
    """The trainer would run in a Ray actor; nothing is started."""
    import ray
    from verl.trainer import main_ppo

    started = ray.is_initialized()
    with rc.record(path=tmp_path / "c"), pytest.raises(rc.CassetteError) as caught:
        main_ppo.run_ppo(config=None, task_runner_class=main_ppo.TaskRunnerV1)
    for way in ("rollout-cassettes run", "+cassettes.mode=record", "task runner of your own"):
        assert way in str(caught.value)
    assert ray.is_initialized() == started


def test_run_ppo_imported_by_name_is_refused_too(tmp_path, assets):
    """The script has the original function: what it calls is guarded."""
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    from rollout_cassettes.demo.config import compose_config

    started = ray.is_initialized()
    with rc.record(path=tmp_path / "c"), pytest.raises(rc.CassetteError, match="in a Ray actor"):
        run_ppo(compose_config(assets, 1), task_runner_class=TaskRunnerV1)
    assert ray.is_initialized() == started


def test_a_session_without_an_adapter_for_verl_does_not_mind(tmp_path):
    """Only who would be in vain is told."""
    from verl.trainer import main_ppo

    own = rc.adapters.function("tests.verl.skip_manager:skipping")
    with rc.record(path=tmp_path / "c", adapters=own), pytest.raises(AttributeError):
        main_ppo.run_ppo(config=None, task_runner_class=None)


@pytest.fixture(scope="module")
def recording(train, tmp_path_factory):
    """The cassette of a training with validation, both phases."""
    path = tmp_path_factory.mktemp("cassettes") / "c"
    with rc.record(path=path, phases=("train", "val")):
        train(overrides=VALIDATION)
    return path


@pytest.mark.parametrize(
    ("run", "phases", "told"),
    [
        ((4, ()), "train", "step 4 is not recorded"),
        ((5, ()), "train", "steps 4-5 are not recorded"),
        ((3, VALIDATION), "train", r"steps 0, 2-3 \(val\) are not covered"),
        ((4, VALIDATION), ("train", "val"), r"step 4 and step 4 \(val\) are not recorded"),
    ],
)
def test_a_run_without_an_engine_has_to_be_recorded_as_a_whole(train, recording, run, phases, told):
    """What is missing is an error at the start, before a prompt is handed out."""
    with (
        rc.replay(path=recording, phases=phases, engines="off") as session,
        pytest.raises(rc.StepNotRecordedError, match=told),
    ):
        train(*run)
    assert session.played == []


@pytest.mark.parametrize("mode", ["auto", "resume_path"])
def test_a_v0_training_asks_for_what_comes_after_its_checkpoint(assets, recording, tmp_path, mode):
    """Which it loads in its `fit`, after the check."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    from rollout_cassettes.demo.config import compose_config

    (tmp_path / "global_step_3").mkdir()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("3")
    where = {
        "auto": f"trainer.default_local_dir={tmp_path}",
        "resume_path": f"trainer.resume_from_path={tmp_path / 'global_step_3'}",
    }
    overrides = (f"trainer.resume_mode={mode}", where[mode])
    trainer = object.__new__(RayPPOTrainer)
    trainer.config = compose_config(assets, 5, (*NO_VALIDATION, *overrides))
    trainer.total_training_steps = 5
    with (
        rc.replay(lambda step: step > 3, path=recording, engines="off"),
        pytest.raises(rc.StepNotRecordedError, match="steps 4-5 are not recorded") as caught,
    ):
        trainer.fit()
    assert "not covered" not in str(caught.value)


def test_a_step_that_is_not_selected_needs_the_engine(train, recording):
    """It would go live."""
    with (
        rc.replay("1-2", path=recording, engines="off"),
        pytest.raises(rc.StepNotRecordedError, match="step 3 is not covered"),
    ):
        train(3)


def test_a_whole_run_is_replayed_without_an_engine(train, recording):
    """Here with the one that is there; tests of whole runs prove that none is started."""
    with rc.replay(path=recording, phases=("train", "val"), engines="off") as session:
        again = train(3, VALIDATION)
    assert session.played == [0, 1, 2, 3]
    assert again.requests == (0, 0)


def test_no_server_is_started_and_no_weights_are_sent(assets, recording):
    """verl's own manager of servers comes up empty, and its checkpoint engine has nothing to do."""
    from types import SimpleNamespace

    from verl.checkpoint_engine.base import CheckpointEngineManager
    from verl.workers.rollout.llm_server import LLMServerManager

    from rollout_cassettes.demo.config import compose_config

    config = compose_config(assets, 3)
    manager = object.__new__(LLMServerManager)
    manager.config, manager.start_rank = config, 0
    engine = SimpleNamespace(backend="naive", actor_wg=None, replicas=[])
    with rc.replay(path=recording, engines="off"):
        asyncio.run(manager._initialize_llm_servers())
        assert CheckpointEngineManager.update_weights(engine, global_steps=1) == {}
    assert (manager.rollout_replicas, manager.server_addresses) == ([], [])


def test_fully_asynchronous_training_needs_the_engine(recording):
    """It feeds as many prompts as it has servers for."""
    from verl.experimental.fully_async_policy.fully_async_rollouter import (
        FullyAsyncLLMServerManager,
    )

    manager = object.__new__(FullyAsyncLLMServerManager)
    manager.hybrid_replicas, manager.worker_group = {}, object()
    with (
        rc.replay(path=recording, engines="off"),
        pytest.raises(rc.CassetteError, match="can't run with engines='off'"),
    ):
        asyncio.run(manager._initialize_llm_servers())
