"""A run of verl as a whole: what it can't go together with, what it asks for, and its engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_cassettes.adapters.adapter import Place
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role

_SERVERS = "verl.workers.rollout.llm_server:LLMServerManager._initialize_llm_servers"
_WEIGHTS = "verl.checkpoint_engine.base:CheckpointEngineManager.update_weights"
_DISPATCHING = (
    "verl.trainer.main_ppo:run_ppo",
    # A script that imported run_ppo by name keeps the original: what it calls, then.
    "verl.trainer.main_ppo:get_ppo_ray_runtime_env",
    "verl.trainer.main_ppo:TaskRunnerV1.remote",
)
"""The ways into the Ray actor that runs the trainer. Source: verl 0.9.1, ``run_ppo``."""


def entry_points(adapter: str, fit: str) -> tuple[EntryPoint, ...]:
    """Return the entry points that an adapter for verl has besides those of its rollouts.

    Args:
        adapter: Its name.
        fit: The trainer's ``fit``, with which a training starts.
    """
    roles = dict.fromkeys(_DISPATCHING, Role.START)
    roles |= dict.fromkeys((_SERVERS, _WEIGHTS), Role.ENGINE)
    return (
        *(
            EntryPoint.to(adapter, each, framework="verl", role=role)
            for each, role in roles.items()
        ),
        EntryPoint.to(adapter, fit, framework="verl", role=Role.START, overrides=True),
    )


def start(call: Call, section: str) -> Iterator[Place]:
    """Refuse verl's own skipping, and a trainer in another process; else say what a run asks for.

    Args:
        call: A call with which a run starts.
        section: The section of verl's ``skip`` configuration that does what the adapter does.

    Raises:
        CassetteError: If the run can't go together with a session.
    """
    if is_dispatching(call):
        raise _elsewhere()
    trainer = call.args[0]
    if _is_enabled(trainer.config, section):
        raise _conflict(section)
    return _plan(trainer)


def is_dispatching(call: Call) -> bool:
    """Tell whether a call is the start of a trainer in another process."""
    return call.point.target in _DISPATCHING


def idle(call: Call) -> Any:
    """Answer for an engine that is not there: no server is started, and no weights are sent.

    Raises:
        CassetteError: If the trainer can't do without.
    """
    manager = call.args[0]
    if call.point.target == _WEIGHTS:
        return {}
    if hasattr(manager, "hybrid_replicas"):
        raise CassetteError(
            "verl's fully asynchronous trainer feeds as many prompts as it has servers for: it "
            "can't run with engines='off'.",
            fixes=["Replay with the engine started: engines='live'."],
        )
    # What LLMServerManager.create_empty sets. Source: verl 0.9.1, workers/rollout/llm_server.py.
    manager.rollout_replicas, manager.server_handles, manager.server_addresses = [], [], []
    return None


def _plan(trainer: Any) -> Iterator[Place]:
    """Say what a run will ask for. Source: ``fit`` of verl 0.9.1's V0 and V1 trainers."""
    options = trainer.config.trainer
    done = getattr(trainer, "global_steps", 0) or _checkpointed(options)
    if options.get("val_before_train", True):
        yield Place(done, "val")
        if options.get("val_only", False):
            return
    last = trainer.total_training_steps
    for step in range(done + 1, last + 1):
        yield Place(step)
        if options.test_freq > 0 and (step == last or step % options.test_freq == 0):
            yield Place(step, "val")


def _checkpointed(options: Any) -> int:
    """Return the step of the checkpoint that V0's trainers go on from: they load it in their fit."""
    from verl.utils.checkpoint.checkpoint_manager import (  # noqa: PLC0415 - verl is imported here
        find_latest_ckpt_path,
    )

    mode, folder = options.get("resume_mode", "disable"), None
    if mode == "auto":
        folder = find_latest_ckpt_path(options.default_local_dir)
    elif mode == "resume_path":
        folder = options.resume_from_path
    return int(folder.split("global_step_")[-1]) if folder else 0


def _is_enabled(config: Any, section: str) -> bool:
    skip = config.get("skip") or {}
    return bool((skip.get(section) or {}).get("enable", False))


def _conflict(section: str) -> CassetteError:
    return CassetteError(
        f"verl's own skip.{section} is enabled while a session of rollout_cassettes is open: both "
        "would answer the same calls.",
        fixes=[
            f"Turn verl's off: skip.{section}.enable=False.",
            (
                "Let rollout_cassettes do what it was to do: "
                "replay(**rollout_cassettes.verl_config.from_skip(config.skip))."
            ),
            "Or leave the with-block out.",
        ],
    )


def _elsewhere() -> CassetteError:
    return CassetteError(
        "This with-block is in the process that starts verl; the trainer runs in a Ray actor, "
        "where nothing would be recorded or replayed.",
        fixes=[
            (
                "Start the command with rollout-cassettes: "
                "rollout-cassettes run --record PATH -- python -m verl.trainer.main_ppo …."
            ),
            "Say it in verl's configuration: +cassettes.mode=record +cassettes.path=PATH.",
            "Put the with-block into a task runner of your own, around TaskRunnerV1's run().",
        ],
    )
