"""Dialogs under way, where ``_rollout_yield_trajs`` yields them once they are done.

A call leaves dialogs in the collector: those that are under way, and those that are done and wait
to be yielded. A replay puts them there as they were recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from rollout_cassettes.adapters.adapter import Exchange
from rollout_cassettes.adapters.torchrl.prompts import columns, flat
from rollout_cassettes.cassette.digest import digest


def before(collector: Any) -> dict[str, Any]:
    """Return the dialogs that are there before a call, by the data set's columns."""
    waiting = [row for each in collector._trajectory_queue for row in _ends(each)]
    env = collector.env
    return {"columns": [*_columns(env, waiting), *columns(env, collector._shuttle)]}


def after(collector: Any) -> dict[str, Any]:
    """Return the dialogs that a call left."""
    return {
        "shuttle": collector._shuttle,
        "under_way": [list(turns) for turns in collector._yield_queues],
        "waiting": list(collector._trajectory_queue),
        "numel": collector._result_numel,
    }


def replay(collector: Any, recorded: Exchange, asked: dict[str, Any]) -> None:
    """Draw a prompt for each dialog that was begun, and put back the dialogs that were left.

    The dialogs that were there before and those that were begun are the ones that were yielded
    and those that were left. They are compared by the data set's columns, in no order: which of them
    took which slot is not recorded.

    Args:
        collector: The collector, as it was before.
        recorded: The recording.
        asked: The live request.
    """
    env, left = collector.env, recorded.response["dialogs"]
    ended = [row for each in (recorded.response["output"], *left["waiting"]) for row in _ends(each)]
    were = [*_columns(env, ended), *columns(env, left["shuttle"])]
    there = asked["dialogs"]["columns"]
    drawn = _drawn(env, left["shuttle"], len(were) - len(there))
    recorded.compare(sorted(were, key=digest), sorted([*there, *drawn], key=digest))
    collector._shuttle = left["shuttle"]
    collector._yield_queues = [deque(turns) for turns in left["under_way"]]
    collector._trajectory_queue = deque(left["waiting"])
    collector._result_numel = left["numel"]


def _ends(batch: Any) -> list[Any]:
    """Return the last turn of each dialog that is done."""
    return [turn for turn in flat(batch) if turn["next", "done"].any()]


def _columns(env: Any, turns: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for turn in turns for row in columns(env, turn)]


def _drawn(env: Any, waiting: Any, count: int) -> list[dict[str, Any]]:
    """Let an environment draw prompts; return their columns of the data set, in order."""
    import torch  # noqa: PLC0415 - this module is imported where torch may not be

    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        size = min(count - len(rows), len(waiting))
        reset = torch.arange(len(waiting)).unsqueeze(-1) < size
        asked = waiting.clone().set("_reset", reset)
        rows += columns(env, env.reset(asked, select_reset_only=True))[:size]
    return rows
