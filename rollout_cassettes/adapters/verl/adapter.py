"""What the adapters of verl's trainers have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_cassettes.adapters.adapter import Adapter, Place
from rollout_cassettes.adapters.verl import run
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.patching import Call


class VerlAdapter(Adapter):
    """Records and replays rollouts of verl; validation only where it is asked for.

    Attributes:
        skip_section: The section of verl's own ``skip`` configuration that does what the adapter
            does.
    """

    skip_section: str
    phases = frozenset({TRAIN})
    unobserved = "verl moves whole batches, to workers in other processes"

    def start(self, call: Call) -> Iterator[Place]:
        """Refuse verl's own skipping of rollouts, and a trainer in another process."""
        return run.start(call, self.skip_section)

    def idle(self, call: Call) -> Any:
        """Start no server, and send it no weights."""
        return run.idle(call)
