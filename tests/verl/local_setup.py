"""A set-up of verl's V1 trainer with the policy in this process."""

from __future__ import annotations

from types import SimpleNamespace

from tests.verl.local_actor import LocalActor


class LocalSetup:
    """Stands before one of verl's trainers, for the parts of its set-up that start Ray actors.

    Attributes:
        local: What the trainer works with: `reward_handles`, and `checkpoints(actor)`, which
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
        self.checkpoint_manager = self.local.checkpoints(self.actor_rollout_wg)
        # The separate-async trainer serves from standalone replicas, through a second manager.
        self.standalone_checkpoint_manager = self.checkpoint_manager
        self.current_mode = None
        self._load_checkpoint()
