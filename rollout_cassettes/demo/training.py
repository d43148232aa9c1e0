"""verl's own task runner in this process, on a local Ray cluster, as often as wanted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import ray
from ray.util.placement_group import remove_placement_group
from verl.trainer.main_ppo import TaskRunnerV1

from rollout_cassettes.demo import cpu_platform  # noqa: F401 - registers it in this process
from rollout_cassettes.demo.engine import EngineReport, start_server

__all__ = ["TrainingRun", "local_cluster", "train"]

POLL_SECONDS = 0.05
RELEASE_SECONDS = 300.0


@dataclass(frozen=True)
class TrainingRun:
    """What a training did.

    Attributes:
        metrics: What verl logged, by step; step 0 is the validation before training.
        engine: How often the engine was asked, and the digest of the weights after each step.
        seconds: How long all of it took, from starting the actors to their end.
    """

    metrics: dict[int, dict[str, Any]]
    engine: EngineReport
    seconds: float

    @property
    def steps(self) -> list[int]:
        """The training steps."""
        return sorted(step for step in self.metrics if step > 0)


@contextmanager
def local_cluster() -> Iterator[None]:
    """Run a Ray cluster of this machine, with as many made-up devices as verl wants.

    TransferQueue and verl's actors ask for more CPUs than two, and use hardly any of them; verl
    places its workers by GPU alone.
    """
    ray.init(
        address="local",  # never a cluster that the environment points to
        num_cpus=16,
        num_gpus=1,
        include_dashboard=False,
        object_store_memory=256 * 2**20,
    )
    try:
        yield
    finally:
        ray.shutdown()


def train(config: Any, log: Path, *, with_engine: bool = True) -> TrainingRun:
    """Train as `python -m verl.trainer.main_ppo` does, with the trainer in this process.

    Needs a cluster (see `local_cluster`), and leaves it as it was.

    Args:
        config: verl's configuration (see `compose_config`).
        log: The file that verl logs its metrics to, a line of JSON per step.
        with_engine: Whether the engine is started, and told about.
    """
    started = time.perf_counter()
    runner = _Runner()
    rollout, model = config.actor_rollout_ref.rollout, config.actor_rollout_ref.model
    # verl would start it after most of the others; it imports for seconds meanwhile.
    server = start_server(rollout, model) if with_engine else None
    try:
        with mock.patch.dict(os.environ, {"VERL_FILE_LOGGER_PATH": str(log)}):
            runner.run(config)
        engine = ray.get(server.report.remote()) if server else EngineReport()
    finally:
        if server:
            ray.kill(server)
        _release(runner)
    return TrainingRun(_read_metrics(log), engine, time.perf_counter() - started)


class _Runner(TaskRunnerV1.__ray_actor_class__):  # type: ignore[misc] # verl is untyped
    """verl's task runner, with a trainer that doesn't sleep for seconds between two looks."""

    def init_agent_loop_manager(self) -> None:
        # verl 0.9.1 has no configuration key for this; the default is 2 seconds.
        self.trainer.replay_buffer.poll_interval = POLL_SECONDS
        super().init_agent_loop_manager()


def _release(runner: Any) -> None:
    """Stop the actors of a run and give back what they held, for the next run to take."""
    for actor in _actors(runner):
        ray.kill(actor)
    pools = getattr(runner.trainer, "resource_pool_manager", None)
    for pool in pools.resource_pool_dict.values() if pools else ():
        for group in pool.pgs or ():
            remove_placement_group(group)
    _wait_for_release()


def _actors(runner: Any) -> list[Any]:
    """List the actors that a run has started, also one that failed on the way."""
    trainer = runner.trainer
    workers = getattr(trainer, "actor_rollout_wg", None)
    servers = getattr(trainer, "llm_server_manager", None)
    rewards = getattr(trainer, "reward_loop_manager", None)
    agents = runner.agent_loop_manager
    return [
        *(workers.workers if workers else ()),
        *([servers.global_load_balancer] if servers else ()),
        *(rewards.reward_loop_workers if rewards else ()),
        *(agents.agent_loop_workers if agents else ()),
    ]


def _wait_for_release() -> None:
    """Wait until names and devices are free again; a second run takes the same ones."""
    deadline = time.monotonic() + RELEASE_SECONDS
    while time.monotonic() < deadline:
        names = ray.util.list_named_actors(all_namespaces=True)
        if not names and ray.available_resources().get("GPU", 0) >= 1:
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(
        f"a training's actors were still there {RELEASE_SECONDS:.0f} seconds after its end: {names}"
    )


def _read_metrics(log: Path) -> dict[int, dict[str, Any]]:
    lines = map(json.loads, log.read_text().splitlines())
    return {line["step"]: line["data"] for line in lines}
