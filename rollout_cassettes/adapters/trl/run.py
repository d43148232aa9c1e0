"""The start of a run of TRL's: what can't be recorded and replayed is refused there."""

from __future__ import annotations

from typing import Any

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role

TRAINERS = (
    "trl.trainer.grpo_trainer:GRPOTrainer",
    "trl.trainer.rloo_trainer:RLOOTrainer",
)

_ASYNC = "trl.experimental.async_grpo.async_grpo_trainer:AsyncGRPOTrainer.train"


def entry_points(adapter: str) -> tuple[EntryPoint, ...]:
    """Return the entry points at which a run of TRL's starts.

    Args:
        adapter: The name of the adapter.
    """
    methods = ("train", "evaluate", "predict")
    runs = [f"{trainer}.{method}" for trainer in TRAINERS for method in methods]
    return tuple(
        EntryPoint.to(adapter, target, framework="trl", role=Role.START, overrides=True)
        for target in (*runs, _ASYNC)
    )


def check(call: Call, *, rewards_are_live: bool) -> None:
    """Refuse a trainer whose rollouts can't be recorded and replayed.

    Args:
        call: The call with which its run starts.
        rewards_are_live: Whether a replay computes rewards.

    Raises:
        CassetteError: If it is such a trainer.
    """
    trainer = call.args[0]
    if call.point.target == _ASYNC:
        raise _elsewhere()
    if getattr(trainer, "use_transformers_continuous_batching", False):
        raise _changes_the_model()
    if rewards_are_live and _has_environments(trainer):
        raise _rewards_need_environments()


def _has_environments(trainer: Any) -> bool:
    names = ("environment_factories", "environment_factory", "environments")
    return any(getattr(trainer, name, None) for name in names)


def _elsewhere() -> CassetteError:
    return CassetteError(
        "trl's AsyncGRPOTrainer makes its rollouts in a process that it spawns, where a with-block "
        "of this process records and replays nothing.",
        fixes=[
            "Use GRPOTrainer or RLOOTrainer.",
            (
                "Give it a rollout_worker= of your own that works in this process, and name the "
                "function that makes its rollouts: "
                "adapters=rollout_cassettes.adapters.function('package.module:Worker.method')."
            ),
            "Or leave the with-block out.",
        ],
    )


def _changes_the_model() -> CassetteError:
    return CassetteError(
        "With use_transformers_continuous_batching, generating changes the model that is trained "
        "(its mode, and with bf16 or fp16 the type of its weights), which a replay would not do.",
        fixes=["Generate without it, or with vLLM."],
    )


def _rewards_need_environments() -> CassetteError:
    return CassetteError(
        "The trainer has environments. A replay calls no tools, so rewards that look at the "
        "environments afterwards would not be those of the recorded run.",
        fixes=[
            (
                "Record rewards too: "
                "adapters=rollout_cassettes.adapters.TrlTrainer(scope='scored'), here and in the "
                "replay."
            )
        ],
    )
