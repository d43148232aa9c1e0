"""A recorded batch of turns, cut by the environment's slots.

It has the same number of turns of each slot. Prompts are drawn for slots, turn after turn, so that a
group is not one prompt: it is the slots that share prompts with each other, and with no other slot.

Batches are taken apart here: neither torchrl nor torch is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons, rows_of
from rollout_cassettes.adapters.torchrl.reading import rows
from rollout_cassettes.adapters.torchrl.turns import Shape
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.cassette.tree.codec import KIND


def groups(recorded: Skeletons) -> list[Group]:
    """Return the slots that share prompts, with their turns as rows, which are counted slot by slot.

    Prompts are told apart by the data set's columns, which stay the same through a dialog.

    Raises:
        ValueError: If it is no batch of turns, or its prompts can't be told apart.
    """
    shape = _shape(recorded)
    columns = recorded.picker.plain(recorded.request["columns"])
    if not columns:
        raise ValueError("its environment has no columns of a data set that tell prompts apart")
    asked = [
        {digest([_entry(turn, key) for key in columns]) for turn in turns}
        for turns in _turns_of_slots(recorded, shape)
    ]
    return [
        Group([slot * shape.turns + turn for slot in slots for turn in range(shape.turns)])
        for slots in _sharing(asked)
    ]


def excerpt(recorded: Skeletons, kept: Sequence[Group]) -> Excerpt:
    """Return a batch with the slots of these groups alone."""
    shape, picker = _shape(recorded), recorded.picker
    request, response = recorded.request, recorded.response
    turns = rows_of(kept)
    slots = sorted({turn // shape.turns for turn in turns})
    asked = slots if recorded.marks else []  # none where the call drew its first prompts itself
    size = {**request["shape"]["slots"], "items": [len(slots)]}
    places = turns if _is_flat(recorded, shape) else slots
    return Excerpt(
        {
            **request,
            "prompts": picker.rows(request["prompts"], asked),
            "shape": {**request["shape"], "slots": size},
        },
        {**response, "output": picker.rows(response["output"], places)},
        asked,
    )


def _shape(recorded: Skeletons) -> Shape:
    """Return the shape of a batch.

    Raises:
        ValueError: If it can't be cut.
    """
    if "shape" not in recorded.request:
        raise ValueError(
            "it is no batch of turns, but one of dialogs that were completed, and which of them took "
            "which slot of the environment is not recorded"
        )
    shape = Shape(**recorded.picker.plain(recorded.request["shape"]))
    if len(shape.slots) != 1:
        raise ValueError(
            f"its environment has the batch size {tuple(shape.slots)}, and not one dimension"
        )
    return shape


def _is_flat(recorded: Skeletons, shape: Shape) -> bool:
    """Tell whether a batch is one row of turns, slot by slot, and not a stack of turns.

    Raises:
        ValueError: If it is neither.
    """
    output, picker = recorded.response["output"], recorded.picker
    count = picker.length(output)
    is_stack = output.get(KIND) == "tensordict.LazyStackedTensorDict"
    if not is_stack or count not in {math.prod(shape.slots), math.prod(shape.slots) * shape.turns}:
        raise ValueError(f"its batch is no stack of {shape.turns} turns of {shape.slots[0]} slots")
    return count != math.prod(shape.slots)


def _turns_of_slots(recorded: Skeletons, shape: Shape) -> list[list[dict[str, Any]]]:
    """Return the turns of each slot, as plain values."""
    turns = rows(recorded.picker.plain(recorded.response["output"]))
    if _is_flat(recorded, shape):
        return [turns[start : start + shape.turns] for start in range(0, len(turns), shape.turns)]
    return [turns[slot :: shape.slots[0]] for slot in range(shape.slots[0])]


def _sharing(asked: Sequence[set[str]]) -> Iterator[list[int]]:
    """Give the slots that share prompts, also by way of others; in the order of their first ones.

    Args:
        asked: The prompts of each slot.
    """
    left = dict(enumerate(asked))
    while left:
        slots, prompts = list[int](), left[min(left)]
        while reached := [slot for slot, own in left.items() if own & prompts]:
            prompts = prompts.union(*map(left.pop, reached))
            slots += reached
        yield sorted(slots)


def _entry(turn: Mapping[str, Any], key: str | Sequence[str]) -> Any:
    """Return an entry of a turn by its key, None where it has none."""
    entry: Any = turn
    for name in [key] if isinstance(key, str) else key:
        entry = entry.get(name) if isinstance(entry, Mapping) else None
    return entry
