"""Trains as slime does, with its rollouts in a Ray actor: `python -m tests.slime.manager FUNCTION`.

Prints what the actor got, and what its rollout function was called for, as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys

import ray

from tests.slime import rollouts


class RolloutManager:
    """Loads the function by its path, and calls it by position and with `evaluation=`, as slime's."""

    def __init__(self, args):
        self.args = args
        self.source = rollouts.Prompts()
        module, _, name = args.rollout_function_path.rpartition(".")
        self.generate_rollout = getattr(importlib.import_module(module), name)

    def generate(self, rollout_id):
        with rollouts.stand_ins():
            data = self.generate_rollout(self.args, rollout_id, self.source, evaluation=False)
            return rollouts.plain(data)

    def calls(self):
        return rollouts.calls


if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    args = rollouts.arguments(rollout_function_path=sys.argv[1])
    manager = ray.remote(RolloutManager).remote(args)
    outputs = [ray.get(manager.generate.remote(step)) for step in range(3)]
    print(json.dumps({"outputs": outputs, "calls": ray.get(manager.calls.remote())}, default=str))
