"""The prompts of an environment: what it drew, as far as the policy and its steps leave it alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_VERSION = "policy_version"
"""What ``track_policy_version`` adds; it may be a uuid, and then differs between equal runs."""


def prompts(env: Any, data: Any) -> list[dict[str, Any]]:
    """Return the prompt of each slot: what the policy sees, and the data set's columns.

    Args:
        env: The environment.
        data: What it gave, or what the policy made of it. Shape ``[*env.batch_size]``.
    """
    return rows(data, [*env.observation_keys, *env.state_keys])


def columns(env: Any, data: Any) -> list[dict[str, Any]]:
    """Return the data set's columns for each slot; they stay the same through a dialog."""
    return rows(data, column_keys(env))


def column_keys(env: Any) -> list[Any]:
    """Return the keys of the data set's columns."""
    return [key for key in env.state_keys if key != _VERSION]


def rows(data: Any, keys: Iterable[Any]) -> list[dict[str, Any]]:
    """Return some entries of each row of a tensordict, by their keys, joined by dots."""
    names = {key: ".".join(key) if isinstance(key, tuple) else key for key in keys}
    names.pop(_VERSION, None)
    found = [{name: _entry(row, key) for key, name in names.items()} for row in flat(data)]
    return [{n: value for n, value in row.items() if value is not None} for row in found]


def flat(data: Any) -> list[Any]:
    """Return the rows of a tensordict of any number of dimensions, in order."""
    if not data.batch_dims:
        return [data]
    return [row for part in data.unbind(0) for row in flat(part)]


def _entry(row: Any, key: Any) -> Any:
    from tensordict import NonTensorData, NonTensorStack  # noqa: PLC0415 - imports torch

    value = row.get(key, None)
    if isinstance(value, NonTensorStack):
        return value.tolist()
    return value.data if isinstance(value, NonTensorData) else value
