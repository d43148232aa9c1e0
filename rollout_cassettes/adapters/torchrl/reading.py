"""Trajectories from batches of torchrl's, for people who look at them.

Tensordicts are dicts by now, and stacks of them lists, one in the other for each dimension. An
instance of a tensorclass, such as ``Text`` or ``History``, is a dict of its attributes.

Source: torchrl 0.14.1, ``torchrl/modules/llm/policies/common.py`` and ``torchrl/data/llm/history.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.columns import total

_FIELDS, _OTHERS = "_tensordict", "_non_tensordict"
"""The attributes in which an instance of a tensorclass has its fields."""

_KNOWN = {"history", "text", "tokens", "masks", "log_probs", "next", "done", "terminated"}
"""Entries that become parts of a trajectory, or are of use to torchrl only."""


def trajectories(batch: Any) -> list[Trajectory]:
    """Return the trajectories of a batch, one for each dialog turn.

    Args:
        batch: What was recorded, as plain containers and numpy arrays.
    """
    numbers: dict[str, int] = {}
    seen: Counter[int] = Counter()
    found = []
    for number, row in enumerate(rows(batch)):
        parts = _parts(row)
        group = numbers.setdefault(repr(parts["prompt"] or row.get("query")), len(numbers))
        others = {name: value for name, value in row.items() if name not in _KNOWN}
        found.append(
            Trajectory(row=number, group=group, session=seen[group], metadata=others, **parts)
        )
        seen[group] += 1
    return found


def rows(batch: Any) -> list[dict[str, Any]]:
    """Return the turns of a batch as dicts of their entries, in the order in which it is stacked.

    Args:
        batch: What was recorded, as plain containers and numpy arrays.
    """
    return _rows(_opened(batch))


def _opened(value: Any) -> Any:
    """Return a value with its instances of tensorclasses as dicts of their fields."""
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if _FIELDS not in value:
        return {name: _opened(item) for name, item in value.items()}
    fields, others = value[_FIELDS], value[_OTHERS]
    if "data" in others:  # of a class that holds one value, such as MetaData
        return others["data"]
    return _opened(fields) if isinstance(fields, list) else _opened({**others, **fields})


def _rows(batch: Any) -> list[dict[str, Any]]:
    """Return the rows of a batch, whichever of its dimensions are stacked."""
    if isinstance(batch, list):
        return [row for item in batch for row in _rows(item)]
    done = batch["done"]
    if done.ndim == 1:
        return [batch]
    return [row for number in range(len(done)) for row in _rows(_item(batch, number))]


def _item(value: Any, number: int) -> Any:
    """Return a row of columns that are in dicts, and in dicts of these."""
    if isinstance(value, dict):
        return {name: _item(column, number) for name, column in value.items()}
    return value[number] if hasattr(value, "__getitem__") else value


def _parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a trajectory is made of."""
    history, text, tokens = (row.get(name) or {} for name in ("history", "text", "tokens"))
    mask = (row.get("masks") or {}).get("all_attention_mask")
    prompt, response = tokens.get("prompt"), tokens.get("response")
    log_probs = (row.get("log_probs") or {}).get("response")
    if mask is not None and prompt is not None and response is not None:
        mask, size = mask.astype(bool), len(prompt)
        if len(mask) == size + len(response):
            prompt, response = prompt[mask[:size]], response[mask[size:]]
            log_probs = None if log_probs is None else log_probs[mask[size:]]
    return {
        "prompt": _messages(history.get("prompt")) or text.get("prompt"),
        "response": text.get("response") or _said(_messages(history.get("response"))),
        "prompt_ids": prompt,
        "response_ids": response,
        "log_probs": log_probs,
        **_rewards(row["next"].get("reward")),
    }


def _messages(history: Any) -> list[dict[str, Any]] | None:
    """Return the chat messages of a history, or None where it holds none."""
    if isinstance(history, list):
        return [{name: each[name] for name in ("role", "content")} for each in history]
    if not history:
        return None
    roles, contents = history["role"], history["content"]
    if isinstance(roles, str):
        roles, contents = [roles], [contents]
    return [
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=True)
    ]


def _said(messages: list[dict[str, Any]] | None) -> str | None:
    return None if messages is None else "\n\n".join(str(each["content"]) for each in messages)


def _rewards(reward: Any) -> dict[str, Any]:
    """Return the rewards of the tokens, where there are several, and their sum."""
    if reward is None:
        return {}
    values = reward.reshape(-1)
    score = {"score": total(values)}
    return score if len(values) == 1 else {"rewards": values, **score}
