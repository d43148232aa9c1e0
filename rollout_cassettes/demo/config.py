"""The configuration of a verl training that two CPU cores can run."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import verl
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from rollout_cassettes.demo.assets import Assets
from rollout_cassettes.demo.engine import ENGINE

__all__ = ["compose_config", "cpu_overrides"]


def compose_config(assets: Assets, steps: int, overrides: Iterable[str] = ()) -> Any:
    """Compose verl's own `ppo_trainer` configuration for a toy training.

    Args:
        assets: The toy task.
        steps: How many training steps to take.
        overrides: Further Hydra overrides; they win over the ones made here.

    Returns:
        The OmegaConf configuration, with its interpolations resolved.
    """
    return copy.deepcopy(_compose((*cpu_overrides(assets, steps), *overrides)))


@functools.cache  # composing takes a second: verl's configuration is 26 YAML files
def _compose(overrides: tuple[str, ...]) -> Any:
    directory = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(config_dir=str(directory), version_base=None):
        config = compose("ppo_trainer", overrides=list(overrides))
    OmegaConf.resolve(config)
    return config


def cpu_overrides(assets: Assets, steps: int) -> list[str]:
    """List the Hydra overrides that make verl's defaults fit the toy task and a CPU."""
    return [
        *_algorithm(),
        *_data(assets),
        *_actor(assets),
        *_rollout(),
        *_trainer(assets, steps),
        "reward.num_workers=1",
        f"reward.custom_reward_function.path={assets.reward}",
    ]


def _algorithm() -> list[str]:
    return [
        "algorithm.adv_estimator=grpo",
        "critic.enable=False",
        "actor_rollout_ref.actor.use_kl_loss=False",
    ]


def _data(assets: Assets) -> list[str]:
    return [
        f"data.train_files={assets.train}",
        f"data.val_files={assets.validation}",
        "data.train_batch_size=4",
        "data.max_prompt_length=64",
        "data.max_response_length=16",
        "data.dataloader_num_workers=0",
        "data.shuffle=True",
        "data.validation_shuffle=False",
        "data.seed=7",
        "data.return_raw_chat=True",
        "data.filter_overlong_prompts=False",
    ]


def _actor(assets: Assets) -> list[str]:
    model, actor = "actor_rollout_ref.model", "actor_rollout_ref.actor"
    return [
        f"{model}.path={assets.model}",
        # verl's fast paths need flash-attention kernels.
        f"{model}.use_remove_padding=False",
        f"{model}.enable_gradient_checkpointing=False",
        f"+{model}.override_config.attn_implementation=eager",
        # FSDP1 refuses parameters on a CPU; FSDP2 takes them.
        f"{actor}.strategy=fsdp2",
        f"{actor}.fsdp_config.strategy=fsdp2",
        f"{actor}.fsdp_config.dtype=float32",
        f"{actor}.fsdp_config.use_torch_compile=False",
        f"{actor}.use_torch_compile=False",
        f"{actor}.ppo_mini_batch_size=2",
        f"{actor}.ppo_micro_batch_size_per_gpu=4",
        f"{actor}.optim.lr=1e-2",
    ]


def _rollout() -> list[str]:
    rollout = "actor_rollout_ref.rollout"
    return [
        f"{rollout}.name={ENGINE}",
        f"{rollout}.n=2",
        f"{rollout}.dtype=float32",
        f"{rollout}.tensor_model_parallel_size=1",
        f"{rollout}.calculate_log_probs=True",
        f"{rollout}.log_prob_micro_batch_size_per_gpu=4",
        f"{rollout}.agent.num_workers=1",
        # Greedy validation is also how the engine tells its requests from training's.
        f"{rollout}.val_kwargs.temperature=0",
    ]


def _trainer(assets: Assets, steps: int) -> list[str]:
    return [
        "trainer.device=cpu",
        "trainer.n_gpus_per_node=1",
        "trainer.nnodes=1",
        "trainer.logger=[file]",
        "trainer.project_name=rollout-cassettes",
        "trainer.experiment_name=demo",
        f"trainer.total_training_steps={steps}",
        # Enough epochs for any number of steps: `total_training_steps` ends the run.
        f"trainer.total_epochs={steps}",
        "trainer.val_before_train=True",
        "trainer.test_freq=2",
        "trainer.save_freq=-1",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={assets.root / 'checkpoints'}",
        "transfer_queue.enable=True",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    ]
