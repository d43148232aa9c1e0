"""verl's V1 trainer on a Ray cluster that lives as long as the test session.

Real, besides what `local_training` has: Ray actors for TransferQueue, `AgentLoopManagerTQ` and its
worker, the reward worker, the load balancer, and the demo's engine, which samples from the policy.
Replaced: the FSDP worker group, by `LocalActor` in this process. What lives in actors is started
once, with the first training's configuration; a training takes a new trainer.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from unittest import mock

import ray
import transfer_queue as tq
from verl.experimental.reward_loop import RewardLoopManager
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls
from verl.workers.rollout.llm_server import LLMServerManager

from rollout_cassettes.demo.config import compose_config
from rollout_cassettes.demo.environment import environment
from rollout_cassettes.demo.training import local_cluster
from tests.verl.local_actor import LocalActor
from tests.verl.local_setup import LocalSetup
from tests.verl.overrides import NO_VALIDATION
from tests.verl.training_run import MetricsLog, Requests, TrainingRun

POLL_INTERVAL = 0.01


class RayTraining:
    """Trains, as often as asked, on one cluster; a context manager that starts and ends it.

    Args:
        assets: The toy task.
        directory: Where logs and caches go.
    """

    def __init__(self, assets, directory):
        self._assets = assets
        self._directory = directory
        self._stack = ExitStack()
        self._runs = 0

    def __enter__(self):
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def __call__(self, steps=3, overrides=(), *, fail=()):
        """Train from the toy task's initial weights.

        Args:
            steps: How many steps.
            overrides: Further Hydra overrides, for the trainer and the data; the actors keep the
                configuration that they were started with.
            fail: Which training requests raise, counted from 1 in the order of arrival.

        Returns:
            The training run.
        """
        config = compose_config(self._assets, steps, (*NO_VALIDATION, *overrides))
        self._runs += 1
        log = MetricsLog(self._directory / f"ray-{self._runs}.jsonl")
        ray.get([self._engine.reset.remote(), self._engine.fail_requests.remote(fail)])
        mode = get_trainer_cls(config.trainer.v1.trainer_mode)
        trainer = type(f"OnRay{mode.__name__}", (LocalSetup, mode), {})(config)
        trainer.local = self._workers
        trainer.replay_buffer.poll_interval = POLL_INTERVAL
        with log.installed(), _emptied_queue():
            trainer.init()
            trainer.fit(self._workers.agent_loop_manager)
            trainer.logger.finish()
            return self._run(trainer, log)

    @property
    def _engine(self):
        return self._workers.engine

    def _start(self):
        """Start the cluster, and on it what trainings share."""
        variables = environment(self._directory)
        self._stack.enter_context(mock.patch.dict(os.environ, variables))
        self._stack.enter_context(local_cluster())
        config = compose_config(self._assets, 1)
        tq.init(config.transfer_queue)
        self._stack.callback(tq.close)
        self._workers = RayWorkers(config)

    def _run(self, trainer, log):
        actor, report = trainer.actor_rollout_wg, ray.get(self._engine.report.remote())
        return TrainingRun(
            parameters=actor.parameters,
            optimizer_state=actor.optimizer_state,
            digests=report.digests,
            metrics=log.read(),
            actor_batches=actor.batches,
            requests=Requests(report.training, report.validation),
            queue_left=_queued_keys(),
            trainer=trainer,
        )


class RayWorkers:
    """The actors that trainings share: the engine, its router, agent loops and the reward.

    Args:
        config: verl's whole configuration, resolved.
    """

    def __init__(self, config):
        rewards = RewardLoopManager(config=config)
        # What it takes from the worker group is its size.
        servers = LLMServerManager.create(config=config, worker_group=LocalActor(config))
        self.reward_handles = rewards.reward_loop_worker_handles
        self.engine = servers.server_handles[0]
        self.agent_loop_manager = AgentLoopManagerTQ.create(
            config=config,
            llm_client=servers.get_client(),
            teacher_client=None,
            reward_loop_worker_handles=self.reward_handles,
        )

    def checkpoints(self, actor, *, pauses):
        """Make what hands the actor's weights to the engine."""
        return RayCheckpoints(actor, self.engine)


class RayCheckpoints:
    """Hands the actor's weights to the engine, as verl's `CheckpointEngineManager` does.

    Args:
        actor: Where weights come from.
        engine: The Ray actor that they go to.
    """

    def __init__(self, actor, engine):
        self._actor = actor
        self._engine = engine

    def update_weights(self, global_steps=None):
        """Send all parameters."""
        ray.get(self._engine.update_weights.remote(self._actor.parameters, global_steps))
        return {}

    def sleep_replicas(self):
        """Do nothing: there is no memory to free."""

    def abort_replicas(self, **kwargs):
        """Do nothing: the engine goes on answering while the actor trains."""

    def resume_generation_replicas(self):
        """Do nothing: it was never stopped."""


@contextmanager
def _emptied_queue():
    """Leave TransferQueue empty, also when a training fails."""
    try:
        yield
    finally:
        while _is_running():
            time.sleep(POLL_INTERVAL)
        for partition, keys in _queued_keys().items():
            tq.kv_clear(keys=keys, partition_id=partition)


def _is_running():
    """Tell whether agent loops are at work, as they are after an asynchronous training."""
    partitions = (tq.kv_list() or {}).values()
    return any(tag.get("status") == "running" for tags in partitions for tag in tags.values())


def _queued_keys():
    """List the keys of every partition that holds any."""
    return {name: sorted(tags) for name, tags in (tq.kv_list() or {}).items() if tags}
