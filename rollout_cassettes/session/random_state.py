"""The random generators of this process: what a live call does to them, a replay does too."""

from __future__ import annotations

import random
import sys
from typing import Any, NamedTuple


class RandomState(NamedTuple):
    """The states of the generators at one moment, by name.

    Attributes:
        states: ``"python"``, and where these libraries are loaded ``"numpy"`` (its global
            generator), ``"torch"`` (the CPU) and ``"cuda:0"``, ….
    """

    states: dict[str, Any]

    @classmethod
    def now(cls) -> RandomState:
        """Return the states as they are."""
        states: dict[str, Any] = {"python": random.getstate()}
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None:
            states["numpy"] = numpy.random.get_state()
        if torch is not None:
            states["torch"] = torch.get_rng_state()
            if torch.cuda.is_initialized():
                for index, state in enumerate(torch.cuda.get_rng_state_all()):
                    states[f"cuda:{index}"] = state
        return cls(states)

    def advanced_since(self, before: RandomState) -> dict[str, Any]:
        """Return the states of the generators that moved since another moment."""
        return {
            name: state
            for name, state in self.states.items()
            if name not in before.states or not _equal(state, before.states[name])
        }


def restore(states: dict[str, Any]) -> None:
    """Put generators into recorded states; those of devices that are missing here are left out."""
    for name, state in states.items():
        if name == "python":
            random.setstate(state)
        elif name == "numpy":
            import numpy as np  # noqa: PLC0415 - only where the recording has its state

            np.random.set_state(state)  # noqa: NPY002 - the global generator is what users seed
        else:
            _restore_torch(name, state)


def _restore_torch(name: str, state: Any) -> None:
    import torch  # noqa: PLC0415 - only where the recording has its state

    if name == "torch":
        torch.set_rng_state(state.cpu())
    elif int(name.partition(":")[2]) < torch.cuda.device_count():
        torch.cuda.set_rng_state(state.cpu(), device=name)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    same = left == right
    return bool(same.all()) if hasattr(same, "all") else bool(same)
