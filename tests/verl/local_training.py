"""verl's V1 trainer in one process: the real `fit()`, with nothing dispatched through Ray.

Real: `PPOTrainer` in all three modes, `ReplayBuffer`, TransferQueue, `AgentLoopWorkerTQ`, the
agent loops, `RewardLoopWorker`, `RLHFDataset`, advantages, metrics, validation. Replaced: Ray's
dispatch, the LLM (`LocalLLM`) and the FSDP worker group (`LocalActor`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

from rollout_cassettes.demo.config import compose_config
from tests.verl import agent_loops  # noqa: F401 - registers them
from tests.verl.actor_batch import ActorBatch
from tests.verl.event_loop import LocalHandle
from tests.verl.local_actor import LocalActor
from tests.verl.local_llm import LocalLLM, Requests
from tests.verl.overrides import NO_VALIDATION
from tests.verl.undecorated import undecorated

POLL_INTERVAL = 0.01  # seconds; verl's 2.0 has no configuration key


@dataclass(frozen=True)
class TrainingRun:
    """What a training did.

    Attributes:
        parameters: The trained model's parameters by name.
        optimizer_state: AdamW's state by parameter index.
        metrics: What verl logged, by step; step 0 is the validation before training.
        actor_batches: What each `update_actor` was called with, in order.
        requests: How many requests reached the LLM.
        queue_left: The keys left in TransferQueue by partition; none after a tidy run.
        trainer: The trainer itself, after `fit()`.
    """

    parameters: dict[str, torch.Tensor]
    optimizer_state: dict[int, dict[str, torch.Tensor]]
    metrics: dict[int, dict[str, float]]
    actor_batches: list[ActorBatch]
    requests: Requests
    queue_left: dict[str, list[str]]
    trainer: Any


class LocalTraining:
    """Trains, as often as asked, leaving nothing behind for the next time.

    Args:
        assets: The toy task.
        queue: The TransferQueue of this process.
        loop: Where agent loops run.
        directory: Where logs go.
    """

    def __init__(self, assets, queue, loop, directory):
        self._assets = assets
        self._queue = queue
        self._loop = loop
        self._directory = directory
        self._runs = 0

    def __call__(self, steps=3, overrides=(), *, fail=()):
        """Train from the toy task's initial weights.

        Args:
            steps: How many steps.
            overrides: Further Hydra overrides.
            fail: Which training requests raise, counted from 1 in the order of arrival.

        Returns:
            The training run.
        """
        config = compose_config(self._assets, steps, (*NO_VALIDATION, *overrides))
        with ExitStack() as stack:
            stack.enter_context(self._queue.installed())
            log = self._log_file(stack)
            trainer = self._make_trainer(config, fail)
            stack.callback(self._settle, trainer)
            trainer.fit(trainer.local.agent_loop_manager)
            trainer.logger.finish()
            self._settle(trainer)
            return TrainingRun(
                parameters=trainer.actor_rollout_wg.parameters,
                optimizer_state=trainer.actor_rollout_wg.optimizer_state,
                metrics=_read_metrics(log),
                actor_batches=trainer.actor_rollout_wg.batches,
                requests=trainer.local.llm.requests,
                queue_left=self._queue.keys(),
                trainer=trainer,
            )

    def _log_file(self, stack):
        self._runs += 1
        path = self._directory / f"run-{self._runs}.jsonl"
        environment = {"VERL_FILE_LOGGER_PATH": str(path)}
        stack.enter_context(mock.patch.dict("os.environ", environment))
        return path

    def _make_trainer(self, config, fail):
        mode = get_trainer_cls(config.trainer.v1.trainer_mode)
        trainer_class = type(f"Local{mode.__name__}", (_LocalSetup, mode), {})
        trainer = trainer_class(config)
        trainer.local = LocalWorkers(config, self._loop, fail)
        trainer.replay_buffer.poll_interval = POLL_INTERVAL
        trainer.init()
        return trainer

    def _settle(self, trainer):
        """Let the agent loops that are under way finish."""
        trainer.local.llm.paused = False
        self._loop.run(trainer.local.settled())


class LocalWorkers:
    """What would be Ray actors: the agent loop worker, the reward worker and the LLM.

    Args:
        config: verl's whole configuration, resolved.
        loop: Where their coroutines run.
        fail: Which training requests raise.
    """

    def __init__(self, config, loop, fail):
        self.llm = LocalLLM(config, fail)
        reward_worker = loop.make(RewardLoopWorker, config)
        self.reward_handles = [LocalHandle(reward_worker)]
        self._worker = loop.make(
            undecorated(AgentLoopWorkerTQ), config, self.llm, None, self.reward_handles
        )
        self.agent_loop_manager = SimpleNamespace(
            generate_sequences=lambda prompts: loop.run(self._worker.generate_sequences(prompts))
        )

    async def settled(self):
        """Wait for every agent loop."""
        await asyncio.gather(*self._worker.background_tasks)


class _LocalSetup:
    """Overrides of verl's trainer: the parts of its set-up that would start Ray actors."""

    def _setup(self):
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        self._init_resource_pool_mgr()
        self.teacher_model_manager = None
        self.distillation_config = None
        self.ref_in_actor = False
        self.actor_rollout_wg = LocalActor(self.config)
        self.reward_loop_manager = SimpleNamespace(
            reward_loop_worker_handles=self.local.reward_handles
        )
        self.checkpoint_manager = LocalCheckpoints(self.actor_rollout_wg, self.local.llm)
        # The separate-async trainer serves from standalone replicas, through a second manager.
        self.standalone_checkpoint_manager = self.checkpoint_manager
        self.current_mode = None
        self._load_checkpoint()


class LocalCheckpoints:
    """Hands the actor's weights to the LLM, as verl's `CheckpointEngineManager` does.

    Args:
        actor: Where weights come from.
        llm: Where they go.
    """

    def __init__(self, actor, llm):
        self._actor = actor
        self._llm = llm

    def update_weights(self, global_steps=None):
        """Let the LLM answer as the actor's weights would."""
        self._llm.load(self._actor.digest(), global_steps)
        return {}

    def sleep_replicas(self):
        """Do nothing: there is no memory to free."""

    def abort_replicas(self, **kwargs):
        """Pause generation."""
        self._llm.paused = True

    def resume_generation_replicas(self):
        """Go on generating."""
        self._llm.paused = False


def _read_metrics(path):
    lines = map(json.loads, path.read_text().splitlines())
    return {line["step"]: line["data"] for line in lines}
