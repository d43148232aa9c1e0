"""A set-up of verl's V1 trainer with the policy in this process."""

from __future__ import annotations

from types import SimpleNamespace

from verl.trainer.ppo.v1.trainer_separate_async import HybridEngineMode

from tests.verl.local_actor import LocalActor


class LocalSetup:
    """Stands before one of verl's trainers, for the parts of its set-up that start Ray actors.

    Attributes:
        local: What the trainer works with: `reward_handles`, and `checkpoints(actor, pauses)`, which
            makes what hands the actor's weights to the LLM. To be set before `init()`.
    """

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
        # The separate-async trainer serves from standalone replicas, through a second manager; its
        # own replicas, which it lends to generation, come and go while those answer.
        separate = self.trainer_mode == "separate_async"
        self.checkpoint_manager = self.local.checkpoints(self.actor_rollout_wg, pauses=not separate)
        self.standalone_checkpoint_manager = self.checkpoint_manager
        lent = separate and self._enable_hybrid_replicas
        self.current_mode = HybridEngineMode.ROLLOUT if lent else HybridEngineMode.TRAINER
        self._load_checkpoint()

    def add_replicas_to_balancer(self):
        """Do nothing: one LLM answers all requests."""

    def remove_replicas_from_balancer(self):
        """Do nothing: one LLM answers all requests."""

    def clear_sticky_cache(self):
        """Do nothing: there is no balancer that could remember."""
