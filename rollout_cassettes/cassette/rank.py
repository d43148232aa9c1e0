"""Which process of a distributed run this one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rollout_cassettes.cassette.key import Key


def own_rank() -> int | None:
    """Return this process's rank among those of a distributed run; None where there is just one.

    torch.distributed says it once its process group is there, and before that the environment
    variables ``RANK`` and ``WORLD_SIZE``, which torchrun and accelerate set.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, size = int(distributed.get_rank()), int(distributed.get_world_size())
    else:
        rank, size = _variable("RANK", 0), _variable("WORLD_SIZE", 1)
    return rank if size > 1 else None


def own(keys: Iterable[Key]) -> list[Key]:
    """Return the places of this process: all of them, unless it is one of a distributed run."""
    rank = own_rank()
    return [key for key in keys if rank is None or key.rank == rank]


def _variable(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else default
