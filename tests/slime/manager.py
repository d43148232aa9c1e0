"""Trains as slime does, with its rollouts in a Ray actor: `python -m tests.slime.manager FUNCTION`.

It does so twice, with an actor each, and prints what they got as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import ExitStack

import ray

from tests.slime import rollouts


class RolloutManager:
    """Loads the function by its path, and calls it by position and with `evaluation=`, as slime's."""

    def __init__(self, args):
        self.args = args
        self.source = rollouts.Prompts()
        self.types = ExitStack()
        self.types.enter_context(rollouts.stand_ins())
        module, _, name = args.rollout_function_path.rpartition(".")
        self.generate_rollout = getattr(importlib.import_module(module), name)

    def generate(self, rollout_id):
        data = self.generate_rollout(self.args, rollout_id, self.source, evaluation=False)
        return rollouts.plain(data)

    def calls(self):
        return rollouts.calls


def train(args):
    """Return what an actor of its own got in three steps, and how often the function was called."""
    manager = ray.remote(RolloutManager).remote(args)
    outputs = [ray.get(manager.generate.remote(step)) for step in range(3)]
    calls = len(ray.get(manager.calls.remote()))
    ray.kill(manager)
    return {"outputs": outputs, "calls": calls}


if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    args = rollouts.arguments(rollout_function_path=sys.argv[1])
    print(json.dumps([train(args), train(args)]))
