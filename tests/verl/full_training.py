"""Train with verl's own task runner and FSDP2 actor, recording or replaying: a process of its own.

    python -m tests.verl.full_training record CASSETTE ASSETS OUTPUT

`replay-off` replays with engines="off", and without validation, which the engine would answer.

Leaves OUTPUT/checkpoints (parameters and optimizer state, as verl saves them), and
OUTPUT/run.pt: metrics, engine report, and every batch that was handed to the actor.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

STEPS = 3


def main(action, cassette, assets_directory, output):
    """Train once; `action` is "record", "replay" or "replay-off"."""
    from rollout_cassettes.demo.environment import environment

    os.environ.update(environment(output))
    import torch

    import rollout_cassettes as rc
    from rollout_cassettes.demo.assets import make_assets
    from rollout_cassettes.demo.config import compose_config
    from rollout_cassettes.demo.training import local_cluster, train

    engine = action != "replay-off"
    config = compose_config(make_assets(assets_directory), STEPS, overrides(output, engine))
    options = {} if engine else {"engines": "off"}
    session = (rc.record if action == "record" else rc.replay)(path=cassette, **options)
    with local_cluster(), kept_batches() as (batches, actors), session:
        run = train(config, output / "metrics.jsonl", with_engine=engine)
    torch.save(
        {
            "metrics": run.metrics,
            "training_requests": run.engine.training,
            "digests": run.engine.digests,
            "actors": actors,
            "batches": batches,
            "summary": str(session),
        },
        output / "run.pt",
    )


def overrides(output, validation):
    """Save parameters and optimizer state at the end; validate, or not."""
    return (
        *(() if validation else ("trainer.val_before_train=False", "trainer.test_freq=-1")),
        f"trainer.save_freq={STEPS}",
        f"trainer.default_local_dir={output / 'checkpoints'}",
        "actor_rollout_ref.actor.checkpoint.save_contents=[model,optimizer,extra]",
    )


@contextmanager
def kept_batches():
    """Keep what the trainer hands to its actor, and the names of the Ray actors that there are."""
    import ray
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    from tests.verl.actor_batch import ActorBatch

    batches, actors = [], set()
    original = PPOTrainer._update_actor

    def update_actor(self, batch, metrics):
        updated = original(self, batch, metrics)  # completes the batch's extra_info
        batches.append(vars(ActorBatch.of(updated)))
        actors.update(each["name"] for each in ray.util.list_named_actors(all_namespaces=True))
        return updated

    with mock.patch.object(PPOTrainer, "_update_actor", update_actor):
        yield batches, actors


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:5]))
