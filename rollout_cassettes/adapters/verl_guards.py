"""What can't go together with a with-block around verl: refused at the start, not found out late."""

from __future__ import annotations

from typing import Any

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role

_SKIP = "verl.utils.skip.skip_manager:SkipManager.init"

_DISPATCHING = (
    "verl.trainer.main_ppo:run_ppo",
    # A script that imported run_ppo by name keeps the original: what it calls, then.
    "verl.trainer.main_ppo:get_ppo_ray_runtime_env",
    "verl.trainer.main_ppo:TaskRunnerV1.remote",
)
"""The ways into the Ray actor that runs the trainer. Source: verl 0.9.1, ``run_ppo``."""


def guards(adapter: str) -> tuple[EntryPoint, ...]:
    """Return the entry points that an adapter for verl refuses."""
    targets = (target.split(":") for target in (_SKIP, *_DISPATCHING))
    return tuple(
        EntryPoint(adapter, module, qualname, framework="verl", role=Role.GUARD)
        for module, qualname in targets
    )


def check(call: Call, section: str) -> None:
    """Refuse verl's own skipping, and a trainer in another process.

    Args:
        call: The guarded call.
        section: The section of verl's ``skip`` configuration that does what the adapter does.

    Raises:
        CassetteError: If the call is one of these.
    """
    if call.point.target in _DISPATCHING:
        raise _elsewhere()
    config = call.kwargs["config"] if "config" in call.kwargs else call.args[-1]
    if _is_enabled(config, section):
        raise _conflict(section)


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
