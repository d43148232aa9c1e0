"""Hydra overrides that tests share; importing this imports no framework."""

from __future__ import annotations

from pathlib import Path

#: Validate before training, at every second step, and at the last.
VALIDATION = ("trainer.val_before_train=True", "trainer.test_freq=2")

NO_VALIDATION = ("trainer.val_before_train=False", "trainer.test_freq=-1")

#: Put rows in a repeatable order, so that two live runs come out the same.
SORTED = (
    f"trainer.v1.sampler.custom_sampler.path={Path(__file__).with_name('samplers.py')}",
    "trainer.v1.sampler.custom_sampler.name=SortedReplayBuffer",
)

#: Hand out two trajectories per session.
TWO_OUTPUTS = ("actor_rollout_ref.rollout.agent.default_agent_loop=two_outputs_agent",)

#: Abort unfinished requests at every sample, with a batch submitted ahead.
COLOCATE_ASYNC = ("trainer.v1.trainer_mode=colocate_async",)

#: Sample twice a step, with a batch submitted ahead.
SEPARATE_ASYNC = (
    "trainer.v1.trainer_mode=separate_async",
    "trainer.v1.separate_async.parameter_sync_step=2",
    "actor_rollout_ref.hybrid_engine=False",
    "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.n_gpus_per_node=1",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=nccl",
)

#: Evict groups whose trajectories all got the same reward, and draw others for them.
FILTERED = (
    f"reward.custom_reward_function.path={Path(__file__).with_name('coarse_reward.py')}",
    "algorithm.filter_groups.enable=True",
    "algorithm.filter_groups.metric=reward",
    "data.gen_batch_size=1",
)

#: As above, with replicas that are lent to generation while the trainer waits for prompts.
HYBRID = (
    *(override for override in SEPARATE_ASYNC if "hybrid_engine" not in override),
    "trainer.v1.separate_async.hybrid_rollout.enable_switch=True",
)
