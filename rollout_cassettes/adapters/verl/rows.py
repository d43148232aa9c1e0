"""The rows of verl's V1 trainer: recorded under old keys, and handed back under new ones.

A row's key is ``{uid}_{session}_{index}``: the prompt, which of its rollouts it is, and which of
the outputs of that rollout.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

_STEP_TAGS = ("global_steps", "min_global_steps", "max_global_steps")


class Rollout(NamedTuple):
    """One rollout of a prompt; verl calls it a session.

    Attributes:
        uid: The prompt's.
        number: Which of the prompt's rollouts it is.
    """

    uid: str
    number: str

    @classmethod
    def of(cls, key: str) -> Rollout:
        """Return the rollout that a row's key stands for."""
        uid, number, _ = key.rsplit("_", 2)
        return cls(uid, number)

    def __str__(self) -> str:
        return f"{self.uid}_{self.number}"


class Row(NamedTuple):
    """One row to be handed back.

    Attributes:
        source: Its place in the recording.
        old: The rollout that it is of there.
        new: The rollout that it becomes one of.
    """

    source: int
    old: Rollout
    new: Rollout


def as_recorded(keys: Sequence[str], names: Mapping[str, str]) -> list[Row]:
    """Return the recorded rows in their order.

    A prompt that this run did not submit gets a new uid too. Under its old one it may be in flight:
    where a run goes on from a checkpoint of the recorded one, and a step before was live.

    Args:
        keys: The recorded keys.
        names: What prompts are called now, by their recorded uid.
    """
    rollouts = [Rollout.of(key) for key in keys]
    unknown = {old.uid for old in rollouts} - names.keys()
    new = {**names, **{uid: str(uuid.uuid4()) for uid in unknown}}
    return [Row(source, old, old._replace(uid=new[old.uid])) for source, old in enumerate(rollouts)]


def fitted(keys: Sequence[str], uids: Sequence[str]) -> list[Row]:
    """Return the rows for other prompts than the recorded ones, whole groups at a time.

    Where there are more prompts than were recorded, the recorded ones are gone through again; where
    there are fewer, the last of them are left out. A group that lacks rollouts which other
    groups have goes through its own again.

    Args:
        keys: The recorded keys.
        uids: The prompts.
    """
    rollouts = [Rollout.of(key) for key in keys]
    groups: dict[str, list[str]] = {}
    for rollout in dict.fromkeys(rollouts):
        groups.setdefault(rollout.uid, []).append(rollout.number)
    rows: list[Row] = []
    if not groups:
        return rows
    for start in range(0, len(uids), len(groups)):
        lap = dict(zip(groups, uids[start : start + len(groups)], strict=False))
        for source, old in enumerate(rollouts):
            if old.uid in lap:
                rows.append(Row(source, old, old._replace(uid=lap[old.uid])))
        rows += _filled_up(rollouts, groups, lap)
    return rows


def _filled_up(
    rollouts: Sequence[Rollout], groups: Mapping[str, list[str]], lap: Mapping[str, str]
) -> Iterator[Row]:
    """Repeat rollouts of groups that have fewer than the others."""
    full = max(map(len, groups.values()))
    for uid, new_uid in lap.items():
        own = groups[uid]
        lacking = [str(number) for number in range(full) if str(number) not in own]
        for number, again in zip(lacking[: full - len(own)], cycle(own), strict=False):
            old = Rollout(uid, again)
            for source, rollout in enumerate(rollouts):
                if rollout == old:
                    yield Row(source, old, Rollout(new_uid, number))


def restored_data(data: Any, rows: Sequence[Row], shift: int | None) -> Any:
    """Return the recorded fields of these rows, with their new uids and rollouts in them."""
    from verl.utils.tensordict_utils import index_select_tensor_dict  # noqa: PLC0415

    sources = [row.source for row in rows]
    if sources != list(range(len(data))):
        data = index_select_tensor_dict(data, sources)
    for name in list(data.keys()):
        _restore_field(data, name, rows, shift)
    return data


def _restore_field(data: Any, name: str, rows: Sequence[Row], shift: int | None) -> None:
    import torch  # noqa: PLC0415 - this module is imported where torch may not be
    from tensordict import NonTensorData, NonTensorStack  # noqa: PLC0415

    field = data.get(name)
    if isinstance(field, torch.Tensor):
        if shift and name in _STEP_TAGS:
            data[name] = field + shift
        return
    before = field.tolist()
    after = [renamed(value, row) for value, row in zip(before, rows, strict=True)]
    if name == "session_id" and any(row.new.number != row.old.number for row in rows):
        after = [int(row.new.number) for row in rows]
    if name in _STEP_TAGS:
        after = [_later(value, shift) for value in after]
    if any(new is not old for new, old in zip(after, before, strict=True)):
        data[name] = NonTensorStack(*[NonTensorData(value) for value in after])


def renamed(value: Any, row: Row) -> Any:
    """Return a value with the old uid replaced wherever it stands, alone or at the start of a key.

    A value without the uid is returned as the object it is.
    """
    if isinstance(value, str):
        for old, new in ((str(row.old), str(row.new)), (row.old.uid, row.new.uid)):
            if value == old or value.startswith(f"{old}_"):
                return new + value[len(old) :]
        return value
    if type(value) not in (dict, list, tuple):
        return value
    before = list(value.values()) if type(value) is dict else list(value)
    after = [renamed(item, row) for item in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return value
    return dict(zip(value, after, strict=True)) if type(value) is dict else type(value)(after)


def restored_tag(tag: Mapping[str, Any], row: Row, shift: int | None) -> dict[str, Any]:
    """Return a row's tag, with its step counts moved along with the step: staleness stays."""
    after: dict[str, Any] = renamed(dict(tag), row)
    return {
        name: _later(value, shift) if name in _STEP_TAGS else value for name, value in after.items()
    }


def _later(value: Any, shift: int | None) -> Any:
    return value + shift if shift and isinstance(value, int) else value
