"""What pages take for granted: names that a `setup` note puts into a page's namespace."""

from __future__ import annotations

import asyncio
import io
import random
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.docs.blocks import ROOT
from tests.verl.overrides import VALIDATION
from tests.verl.skip_manager import kept_apart, skipping


def committed_cassettes() -> dict[str, Any]:
    """Let `cassettes/` be that of the repository."""
    Path("cassettes").symlink_to(ROOT / "cassettes")
    return {}


def s3_bucket(monkeypatch: Any, stack: ExitStack) -> dict[str, Any]:
    """Make a bucket in an S3 that runs on this machine, and let clients find it.

    Args:
        monkeypatch: Sets what the environment of a user of S3 has.
        stack: Keeps the server for as long as the page runs.
    """
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    stack.callback(server.stop)
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
    return {}


def verl_trainer(train: Any) -> dict[str, Any]:
    """Return a trainer of verl's: its real `fit()`, on the in-process harness.

    Args:
        train: The fixture of tests/verl/conftest.py. It makes a trainer and fits it.
    """

    def fit(agent_loop_manager: Any) -> None:
        with redirect_stdout(io.StringIO()):  # verl prints where it is; pages show what we print
            train(steps=3)

    return {"trainer": SimpleNamespace(fit=fit), "agent_loop_manager": None}


def verl_validation(train: Any) -> dict[str, Any]:
    """Return a trainer whose real `fit()` validates too; it is initialized when it is fitted.

    Args:
        train: The fixture of tests/verl/conftest.py.
    """

    def fit(agent_loop_manager: Any) -> None:
        with redirect_stdout(io.StringIO()):
            train(steps=3, overrides=VALIDATION)

    trainer = SimpleNamespace(init=lambda: None, fit=fit)
    return {"trainer": trainer, "agent_loop_manager": None}


def trl_trainer(train_trl: Any) -> dict[str, Any]:
    """Return a trainer of TRL's, to be trained for three steps and evaluated.

    Args:
        train_trl: The fixture of tests/trl/conftest.py, which makes trainers.
    """
    from tests.trl.training import one_thread

    trainer = train_trl.make(max_steps=3)
    trainer.train = one_thread()(trainer.train)
    return {"trainer": trainer}


def slime_run(stack: ExitStack) -> dict[str, Any]:
    """Record two rollouts of slime's, as the page's `cassettes.yaml` says.

    Args:
        stack: Keeps slime's types for as long as the page runs.
    """
    from rollout_cassettes.adapters.slime import generate_rollout
    from tests.slime import rollouts

    stack.enter_context(rollouts.stand_ins())
    head, *lines = Path("cassettes.yaml").read_text(encoding="utf-8").splitlines()
    options = dict(line.strip().split(": ") for line in lines)
    assert (head, options["mode"]) == ("cassettes:", "record")
    args, source = rollouts.arguments(), rollouts.Prompts()
    args.cassettes = options | {"rollout_function": "tests.slime.rollouts.legacy"}
    for rollout_id in range(2):
        generate_rollout(args, rollout_id, source)
    return {}


def slime_debug_data() -> dict[str, Any]:
    """Write what slime's `--save-debug-rollout-data debug/{rollout_id}.pt` writes."""
    import torch

    from tests.slime import rollouts

    Path("debug").mkdir()
    args, source = rollouts.arguments(), rollouts.Prompts()
    for step in range(2):
        groups = rollouts.legacy(args, step, source)
        samples = [sample.to_dict() for group in groups for sample in group]
        torch.save({"rollout_id": step, "samples": samples}, f"debug/{step}.pt")
    return {}


def skyrl_experiment(stack: ExitStack) -> dict[str, Any]:
    """Return an experiment of SkyRL's with three steps; its generator answers at random.

    Args:
        stack: Keeps SkyRL's interface for as long as the page runs.
    """
    from tests.published import published

    file = ROOT / "tests" / "skyrl" / "interface.py"
    base = stack.enter_context(published("skyrl.train.generators.base", file))

    class Generator(base.GeneratorInterface):
        async def generate(self, input_batch: Any) -> Any:
            ids = [[random.randint(0, 99)] for _ in input_batch["prompts"]]
            return {"prompt_token_ids": ids, "response_ids": ids, "rewards": [1.0 for _ in ids]}

    def run() -> None:
        for step in (1, 2, 3):
            asyncio.run(
                Generator().generate(
                    {
                        "prompts": [[{"role": "user", "content": "a"}]],
                        "env_classes": ["gsm8k"],
                        "env_extras": [{}],
                        "batch_metadata": base.BatchMetadata(step, "train"),
                    }
                )
            )

    return {"experiment": SimpleNamespace(run=run), "cfg": None}


def openrlhf_trainer(stack: ExitStack) -> dict[str, Any]:
    """Return a trainer that drives OpenRLHF's generator for two steps.

    Args:
        stack: Keeps OpenRLHF's module for as long as the page runs.
    """
    from tests.openrlhf import conftest as openrlhf
    from tests.published import published

    file = ROOT / "tests" / "openrlhf" / "generator.py"
    module = stack.enter_context(published(openrlhf.MODULE, file))

    def fit() -> None:
        generator = openrlhf.make(module, [openrlhf.Engine()], "abcd")
        while not generator.generate_samples()[3]:
            pass

    return {"trainer": SimpleNamespace(fit=fit)}


def torchrl_collector(train_torchrl: Any) -> dict[str, Any]:
    """Return a collector of torchrl's, and a function that trains on a batch.

    Args:
        train_torchrl: The fixture of tests/torchrl/conftest.py, which makes collectors.
    """
    collector, train = train_torchrl.loop()
    return {"collector": collector, "train": train}


def verl_skip(assets: Any) -> dict[str, Any]:
    """Return verl's configuration with SkipManager on.

    Args:
        assets: The fixture of tests/verl/conftest.py.
    """
    from rollout_cassettes.demo.config import compose_config

    return {"config": compose_config(assets, 3, skipping("rollout_tq", Path("dump").absolute()))}


def verl_dumps(train: Any) -> dict[str, Any]:
    """Let verl's own SkipManager dump three steps into `dump/`.

    Args:
        train: The fixture of tests/verl/conftest.py.
    """
    with kept_apart(), redirect_stdout(io.StringIO()):
        train(steps=3, overrides=skipping("rollout_tq", Path("dump").absolute()))
    return {}
