"""verl's V1 trainer in one process: the real `fit()`, with nothing dispatched through Ray.

Real: `PPOTrainer` in all three modes, `ReplayBuffer`, TransferQueue, `AgentLoopWorkerTQ`, the
agent loops, `RewardLoopWorker`, `RLHFDataset`, advantages, metrics, validation. Replaced: Ray's
dispatch, the LLM (`LocalLLM`) and the FSDP worker group (`LocalActor`).
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ

from rollout_cassettes.demo.config import compose_config
from tests.verl import agent_loops  # noqa: F401 - registers them
from tests.verl.event_loop import LocalHandle
from tests.verl.local_llm import LocalLLM
from tests.verl.local_setup import LocalSetup
from tests.verl.overrides import NO_VALIDATION
from tests.verl.training_run import MetricsLog, Requests, TrainingRun
from tests.verl.undecorated import undecorated

POLL_INTERVAL = 0.01  # seconds; verl's 2.0 has no configuration key


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
        self.llm = None  # that of the last run

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
        self._runs += 1
        log = MetricsLog(self._directory / f"local-{self._runs}.jsonl")
        with ExitStack() as stack:
            stack.enter_context(self._queue.installed())
            stack.enter_context(log.installed())
            trainer = self._make_trainer(config, fail)
            self.llm = trainer.local.llm
            stack.callback(self._settle, trainer)
            trainer.fit(trainer.local.agent_loop_manager)
            trainer.logger.finish()
            self._settle(trainer)
            return self._run(trainer, log)

    def _run(self, trainer, log):
        actor, llm = trainer.actor_rollout_wg, trainer.local.llm
        return TrainingRun(
            parameters=actor.parameters,
            optimizer_state=actor.optimizer_state,
            digests=llm.digests,
            metrics=log.read(),
            actor_batches=actor.batches,
            requests=Requests(llm.training, llm.validation),
            queue_left=self._queue.keys(),
            trainer=trainer,
        )

    def _make_trainer(self, config, fail):
        mode = get_trainer_cls(config.trainer.v1.trainer_mode)
        trainer_class = type(f"Local{mode.__name__}", (LocalSetup, mode), {})
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
        self.agent_loop_manager = LocalManager(loop, self._worker)

    def checkpoints(self, actor, *, pauses):
        """Make what hands the actor's weights to the LLM."""
        return LocalCheckpoints(actor, self.llm, pauses)

    async def settled(self):
        """Wait for every agent loop."""
        await asyncio.gather(*self._worker.background_tasks)


class LocalManager(AgentLoopManagerTQ):
    """verl's manager, with one worker that is not dispatched to through Ray.

    Args:
        loop: Where the worker runs.
        worker: The worker.
    """

    def __init__(self, loop, worker):
        self._loop = loop
        self._worker = worker

    def generate_sequences(self, prompts):
        """Hand prompts to the agent loops."""
        self._loop.run(self._worker.generate_sequences(prompts))


class LocalCheckpoints:
    """Hands the actor's weights to the LLM, as verl's `CheckpointEngineManager` does.

    Args:
        actor: Where weights come from.
        llm: Where they go.
        pauses: Whether the LLM stops while the actor trains.
    """

    def __init__(self, actor, llm, pauses):
        self._actor = actor
        self._llm = llm
        self._pauses = pauses

    def update_weights(self, global_steps=None):
        """Let the LLM answer as the actor's weights would."""
        self._llm.load(self._actor.digest(), global_steps)
        return {}

    def sleep_replicas(self):
        """Do nothing: there is no memory to free."""

    def abort_replicas(self, **kwargs):
        """Pause generation."""
        self._llm.paused = self._pauses

    def resume_generation_replicas(self):
        """Go on generating."""
        self._llm.paused = False
