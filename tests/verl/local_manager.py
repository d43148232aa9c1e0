"""verl's agent loop managers in this process: nothing dispatched through Ray but by name.

Real: `AgentLoopManager`, `FullyAsyncAgentLoopManager`, `AgentLoopWorker`, the agent loop,
`RewardLoopWorker`, `RLHFDataset`. Replaced: Ray's dispatch, and the LLM.
"""

from __future__ import annotations

import numpy as np
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.dataset.rl_dataset import collate_fn

from rollout_cassettes.demo.config import compose_config
from tests.verl.event_loop import ThreadHandle
from tests.verl.local_llm import LocalLLM

try:
    from verl.trainer.ppo.utils import create_rl_dataset
except ImportError:  # verl 0.8.0
    from verl.trainer.main_ppo import create_rl_dataset


class LocalRollouts:
    """A manager of one worker, and the prompts of the toy task.

    Args:
        manager_class: One of verl's managers, or a class made from it.
        assets: The toy task.
        loop: Where the workers are made.
        late_rewards: Whether rewards are computed after generation, so that columns are echoed.
    """

    def __init__(self, manager_class, assets, loop, *, late_rewards=False):
        self.config = compose_config(assets, 3)
        self.llm = LocalLLM(self.config)
        reward = (
            None if late_rewards else [ThreadHandle(loop, loop.make(RewardLoopWorker, self.config))]
        )
        self.manager = manager_class(self.config, self.llm, None, reward)
        worker = loop.make(AgentLoopWorker, self.config, self.llm, None, reward)
        self.manager.agent_loop_workers = [ThreadHandle(loop, worker)]
        tokenizer = omega_conf_to_dataclass(self.config.actor_rollout_ref.model).tokenizer
        data = self.config.data
        self._dataset = create_rl_dataset(
            data.train_files, data, tokenizer, None, is_train=True, max_samples=-1
        )

    def prompts(self, step, count=4, n=2, *, validate=False, run="live"):
        """Make the request of a step, as `RayPPOTrainer.fit` does."""
        rows = [self._dataset[(step * 4 + row) % len(self._dataset)] for row in range(count)]
        batch = DataProto.from_single_dict(collate_fn(rows))
        uids = [f"{run}-{step}-{row}" for row in range(count)]
        batch.non_tensor_batch["uid"] = np.array(uids, dtype=object)
        batch.meta_info |= {"global_steps": step, "validate": validate}
        return batch.repeat(repeat_times=n, interleave=True)

    def fed(self, index, epoch=0, n=2):
        """Make the request of one fed prompt, as `FullyAsyncRollouter` does."""
        batch = self.prompts(index, count=1, n=n)
        name = f"uid_sample_{epoch}_{index}"
        batch.non_tensor_batch["uid"] = np.array([name] * len(batch), dtype=object)
        return batch
