"""verl's `FullyAsyncRollouter` as the Ray actor that it is: a process of its own.

    python -m tests.verl.rollouter_actor ASSETS DIRECTORY

Prints a line of JSON: what came back from the actor's `fit`, what of an error of a replay, and what
of a relative path.
The rollouter is verl's own, made as verl makes it, up to the point where it would start engines.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import rollout_cassettes as rc

OVERRIDES = (
    "data.train_batch_size=0",
    "data.gen_batch_size=1",
    "actor_rollout_ref.hybrid_engine=False",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=nccl",
    "rollout.total_rollout_steps=2",
    "ray_kwargs.ray_init.num_cpus=16",
    "+ray_kwargs.ray_init.include_dashboard=False",
    "+cassettes.mode=record",
    "+cassettes.path=fully-async",
)

#: Keys of the demo's that this configuration hasn't got.
ABSENT = ("transfer_queue.", "actor_rollout_ref.rollout.nnodes")


def main(assets_directory, directory):
    """Start the cluster as verl does, then both actors."""
    from rollout_cassettes.demo.environment import environment

    os.environ.update(environment(directory))
    os.chdir(directory)
    import ray
    from omegaconf import OmegaConf
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    config = compose(assets_directory)
    runtime_env = get_ppo_ray_runtime_env(config)
    options = OmegaConf.to_container(config.ray_kwargs.ray_init)
    ray.init(**{**options, "runtime_env": runtime_env})
    try:
        told = {"fit": fit(config), "mismatch": mismatch(directory), "relative": relative()}
        print(json.dumps(told))
    finally:
        ray.shutdown()


def compose(assets_directory):
    """Compose verl's configuration of fully async training for the toy task."""
    import verl
    from hydra import compose, initialize_config_dir

    from rollout_cassettes.demo.assets import make_assets
    from rollout_cassettes.demo.config import cpu_overrides

    overrides = [*cpu_overrides(make_assets(assets_directory), 1), *OVERRIDES]
    configs = Path(verl.__file__).parent / "experimental" / "fully_async_policy" / "config"
    with initialize_config_dir(str(configs), version_base=None):
        return compose(
            "fully_async_ppo_trainer",
            overrides=[each for each in overrides if not each.startswith(ABSENT)],
        )


def fit(config):
    """Call `fit` of the real rollouter: it has no queue yet, and says so from inside the session."""
    import ray
    from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter
    from verl.utils import hf_tokenizer

    tokenizer = hf_tokenizer(config.actor_rollout_ref.model.path)
    rollouter = FullyAsyncRollouter.remote(config=config, tokenizer=tokenizer, device_name="cpu")
    try:
        ray.get(rollouter.fit.remote())
    except ValueError as error:
        return str(error).splitlines()[-1]
    return "nothing was raised"


def mismatch(directory):
    """Let an actor's replay refuse a request, and look at the error here."""
    import ray

    @ray.remote(num_cpus=0)
    class Trainer:
        def fit(self, prompt, session):
            @rc.adapters.function(name="rollout", request_of=lambda prompt: [prompt])
            def rollout(prompt):
                return dict(prompt)

            with session(path=directory / "plain"):
                rollout(prompt)

    trainer = Trainer.remote()
    ray.get(trainer.fit.remote({"text": "a"}, rc.record))
    try:
        ray.get(trainer.fit.remote({"text": "b"}, rc.replay))
    except rc.RequestMismatchError as error:
        return {"text": str(error), "row": error.row, "field": error.field, "step": error.step}
    return None


def relative():
    """Hand a trainer in an actor a relative path that nobody has made absolute."""
    import ray

    @ray.remote(num_cpus=0)
    class Runner:
        def run(self):
            from omegaconf import OmegaConf
            from verl.trainer.ppo.ray_trainer import RayPPOTrainer

            class Trainer(RayPPOTrainer):
                config = OmegaConf.create({"cassettes": {"mode": "record", "path": "here"}})

                def __init__(self):
                    pass

                def fit(self):
                    pass

            Trainer().fit()

    try:
        ray.get(Runner.remote().run.remote())
    except rc.CassetteError as error:
        return error.what
    return "nothing was raised"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
