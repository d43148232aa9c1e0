"""The environment variables of a training on a CPU, in every one of its processes."""

from __future__ import annotations

from pathlib import Path

__all__ = ["environment"]


def environment(directory: Path) -> dict[str, str]:
    """List the variables to set before `ray.init` and before verl is imported.

    Ray's workers inherit the variables of the process that starts the cluster.

    Args:
        directory: Where caches may go.
    """
    return {
        # verl imports these in each process; they register the platform and the engine.
        "VERL_USE_EXTERNAL_MODULES": "rollout_cassettes.demo.cpu_platform,rollout_cassettes.demo.engine",
        # verl 0.9.1 registers its FSDP engine for cuda and npu; it runs on a CPU as it is.
        "VERL_ENGINE_DEVICE": "cuda",
        # What verl's `run_ppo` puts into the runtime environment of Ray.
        "TRANSFER_QUEUE_ENABLE": "1",
        # The toy model's tensors are too small for threads to share.
        "OMP_NUM_THREADS": "1",
        "TQ_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Nothing is fetched, reported, or left in the user's caches.
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(directory / "datasets"),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray gives up after 30 seconds, which a busy machine may need.
        "RAY_raylet_start_wait_time_s": "300",
    }
