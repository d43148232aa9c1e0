"""verl's own command line for training, with the demo's toy task: what a user types.

The command is `python -m verl.trainer.main_ppo KEY=VALUE ...`. It starts a cluster, on which the
trainer, the FSDP2 actor and the demo's engine are Ray actors.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TIMEOUT = 1200  # seconds

CLUSTER = (
    "ray_kwargs.ray_init.num_cpus=16",
    "+ray_kwargs.ray_init.num_gpus=1",
    "+ray_kwargs.ray_init.include_dashboard=False",
    f"+ray_kwargs.ray_init.object_store_memory={256 * 2**20}",
)


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        status: Its exit status.
        output: What it printed, Ray's workers included.
        logs: What Ray's workers wrote: their last lines may come too late to be printed.
        metrics: What verl logged, by step.
    """

    status: int
    output: str
    logs: str
    metrics: dict[int, dict[str, float]]


def overrides(assets, steps):
    """List the Hydra overrides of a training that this machine can run."""
    from rollout_cassettes.demo.config import cpu_overrides
    from tests.verl.overrides import NO_VALIDATION

    return [*cpu_overrides(assets, steps), *NO_VALIDATION, *CLUSTER]


def run(command, directory, caches):
    """Run a shell's command in a directory, with the programs of this environment.

    Args:
        command: The command.
        directory: Where it is run.
        caches: Where caches may go.
    """
    from rollout_cassettes.demo.environment import environment

    log = directory / "metrics.jsonl"
    log.unlink(missing_ok=True)
    # A short name, since sockets are in it; processes of the cluster may outlive its driver a little.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as cluster:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env={
                **os.environ,
                **environment(caches),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "RAY_TMPDIR": cluster,
                "VERL_FILE_LOGGER_PATH": str(log),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
        written = sorted(Path(cluster).glob("ray/session_2*/logs/worker-*"))
        logs = "".join(path.read_text("utf-8", "replace") for path in written)
    lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    metrics = {line["step"]: line["data"] for line in lines}
    return Ended(done.returncode, done.stdout, logs, metrics)
