"""Batches of turns, as ``_rollout_all`` collects them: all slots of an environment, turn by turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rollout_cassettes.adapters.adapter import Compare
from rollout_cassettes.adapters.torchrl.prompts import flat, prompts
from rollout_cassettes.errors import CassetteError


class Shape(NamedTuple):
    """What a batch of turns is made of.

    Attributes:
        slots: The environment's batch size.
        turns: How many turns there are of each.
    """

    slots: tuple[int, ...]
    turns: int

    @classmethod
    def of(cls, collector: Any) -> Shape:
        """Return the shape of the batches that a collector collects."""
        slots = collector.env.batch_size
        return cls(tuple(slots), math.ceil(collector.dialog_turns_per_batch / slots.numel()))


def check(collector: Any, batch: Any) -> None:
    """Refuse a batch of which a replay could not tell which prompts were drawn for it.

    Raises:
        CassetteError: If it is not made of whole turns.
    """
    slots, count = Shape.of(collector)
    if batch.numel() != count * math.prod(slots):
        raise CassetteError(
            f"{type(collector).__name__}._rollout_all returned {batch.numel()} dialog turns, where "
            f"{count} of each of {math.prod(slots)} environments were to be collected: a replay "
            "can't tell which prompts were drawn.",
            fixes=["Filter the batch later, in the collector's postproc= or in the training loop."],
        )


def replay(collector: Any, batch: Any, waited: int, compare: Compare) -> None:
    """Let the environment draw the prompts that it drew while a batch was collected.

    It is reset where dialogs are done, and not stepped.

    Args:
        collector: The collector, as it was before.
        batch: What was collected.
        waited: For how many of the batch's turns prompts were there before; these are compared.
        compare: What compares the others.
    """
    env = collector.env
    if collector.reset_at_each_iter or collector._shuttle is None:
        collector._shuttle = env.reset()
    recorded, live = [], []
    for turn in _turns(batch, Shape.of(collector)):
        recorded += prompts(env, turn)
        live += prompts(env, collector._shuttle)
        collector._shuttle = _after(env, turn.clone())
    compare(recorded[waited:], live[waited:])


def fitted(collector: Any, batch: Any, recorded: Shape) -> Any:
    """Return a batch for the live number of environments and turns.

    Where there are more than were recorded, those are gone through again; where there are fewer,
    the last are left out.

    Args:
        collector: The collector.
        batch: What was recorded.
        recorded: Its shape.
    """
    from tensordict import lazy_stack  # noqa: PLC0415 - imports torch

    live = Shape.of(collector)
    if live == recorded:
        return batch
    were = [flat(turn) for turn in _turns(batch, recorded)]
    rows = [
        [
            were[turn % recorded.turns][slot % len(were[0])].clone()
            for slot in range(math.prod(live.slots))
        ]
        for turn in range(live.turns)
    ]
    turns = lazy_stack([_stacked(row, live.slots) for row in rows], -1)
    return turns.view(-1) if collector.flatten_data else turns


def _turns(batch: Any, shape: Shape) -> Sequence[Any]:
    """Return a batch's turns, each as large as the environment, whether it is flattened or not."""
    if batch.batch_size == (*shape.slots, shape.turns):
        turns: Sequence[Any] = batch.unbind(-1)
        return turns
    rows = batch.unbind(0)
    return [_stacked(rows[turn :: shape.turns], shape.slots) for turn in range(shape.turns)]


def _stacked(rows: Sequence[Any], slots: Sequence[int]) -> Any:
    from tensordict import lazy_stack  # noqa: PLC0415 - imports torch

    if not slots:
        return rows[0]
    size = len(rows) // slots[0]
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return lazy_stack([_stacked(part, slots[1:]) for part in parts])


def _after(env: Any, turn: Any) -> Any:
    """Return what follows a turn, as ``EnvBase.step_and_maybe_reset`` does once it has stepped."""
    after = env._step_mdp(turn)
    if env._post_step_mdp_hooks is not None:
        _, after = env._post_step_mdp_hooks(turn, after)
    return env.maybe_reset(after)
