"""The random generators of this process: what a live call does to them, a replay does too."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Mapping
from datetime import datetime
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
        numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
        if numpy is not None:
            states["numpy"] = numpy.get_state(legacy=False)
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


class Span(NamedTuple):
    """When a call was made, while it was recorded."""

    started: datetime
    ended: datetime

    def outlasts(self, other: Span) -> bool:
        """Tell whether this call was under way when the other one ended."""
        return self.started < other.ended < self.ended


class Generators:
    """Puts the generators of this process where recorded calls left them.

    Calls may have overlapped when they were recorded, and each knows where the generators were
    when it ended. Of such calls the one that ended last counts, in whatever order they are
    replayed.
    """

    def __init__(self) -> None:
        self._last: dict[str, Span] = {}
        self._lock = threading.Lock()

    def advance(self, states: Mapping[str, Any], span: Span) -> None:
        """Do to the generators what a recorded call did.

        Raises:
            ValueError: If one can't be put into its recorded state; the message says which.
        """
        with self._lock:
            for name, state in states.items():
                last = self._last.get(name)
                if last is None or not last.outlasts(span):
                    self._last[name] = span
                    restore(name, state)


def restore(name: str, state: Any) -> None:
    """Put a generator into a recorded state; that of a device which is missing here is left out.

    Raises:
        ValueError: If it is no state of that generator.
    """
    try:
        if name == "python":
            random.setstate(state)
        elif name == "numpy":
            _restore_numpy(state)
        else:
            _restore_torch(name, state)
    except Exception as error:  # each library has its own ways to refuse a state
        raise ValueError(f"{name} does not take its recorded state ({error!r})") from error


def _restore_numpy(state: Any) -> None:
    import numpy as np  # noqa: PLC0415 - only where the recording has its state

    np.random.set_state(state)  # noqa: NPY002 - the global generator is what users seed


def _restore_torch(name: str, state: Any) -> None:
    import torch  # noqa: PLC0415 - only where the recording has its state

    if name == "torch":
        torch.set_rng_state(state.cpu())
    elif int(name.partition(":")[2]) < torch.cuda.device_count():
        torch.cuda.set_rng_state(state.cpu(), device=name)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    same = left == right
    return bool(same.all()) if hasattr(same, "all") else bool(same)
