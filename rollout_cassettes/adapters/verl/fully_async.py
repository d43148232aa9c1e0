"""The adapter for verl's fully asynchronous training: one call for each prompt, many in flight.

``FullyAsyncRollouter`` feeds prompts to ``FullyAsyncAgentLoopManager.generate_sequences_single``,
and names each ``uid_sample_{epoch}_{index}``. The feed index is the order in which prompts were
handed out: neither the trainer's step, nor the order in which they are finished.

Source: verl 0.9.1, ``verl/experimental/fully_async_policy/fully_async_rollouter.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rollout_cassettes.adapters.adapter import Place
from rollout_cassettes.adapters.verl import run
from rollout_cassettes.adapters.verl.v0 import FIT, VerlV0
from rollout_cassettes.patching import Call, EntryPoint

NAME = "verl_fully_async"

_ROLLOUTER = ("verl.experimental.fully_async_policy.fully_async_rollouter", "FullyAsyncRollouter")
_UID = re.compile(r"(?:uid_)?sample_\d+_(?P<index>\d+)")


class VerlFullyAsync(VerlV0):
    """Records and replays the rollouts of verl's fully asynchronous trainer, prompt by prompt."""

    name = NAME
    step_kind = "feed index"
    skip_section = "async_rollout"
    entry_points = (
        EntryPoint.to(
            NAME,
            "verl.experimental.fully_async_policy.fully_async_rollouter:"
            "FullyAsyncAgentLoopManager.generate_sequences_single",
            framework="verl",
            overrides=True,
        ),
        *run.entry_points(NAME, FIT),  # the rollouter derives from the V0 trainer
    )

    def start(self, call: Call) -> Iterator[Place]:
        """Refuse what the others refuse; how many prompts will be fed is not known.

        The start of another trainer is none of this adapter's: its section of verl's ``skip``
        configuration does nothing there.
        """
        if run.is_dispatching(call) or _is_rollouter(call.args[0]):
            super().start(call)
        return iter(())

    def _step(self, prompts: Any) -> int:
        uid = str(prompts.non_tensor_batch["uid"][0])
        found = _UID.fullmatch(uid)
        if found is None:
            raise ValueError(f"a fed prompt is named uid_sample_(epoch)_(index), not {uid!r}")
        return int(found["index"])


def _is_rollouter(trainer: Any) -> bool:
    return any((cls.__module__, cls.__qualname__) == _ROLLOUTER for cls in type(trainer).__mro__)
