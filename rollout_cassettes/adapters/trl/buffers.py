"""What a trainer of TRL's notes while it generates: metrics, logged completions, tokens seen.

A live call adds to these buffers, and the trainer logs them later. A replay makes no call, so it
adds what the call added.

Source: trl 1.16.0, ``trl/trainer/grpo_trainer.py``: ``_generate``, ``_generate_and_score_completions``
and ``log``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TOKENS = "num_tokens"
"""The metric that is no series: it is what ``num_input_tokens_seen`` stands at."""


def marks(trainer: Any) -> dict[str, Any]:
    """Return where a trainer's buffers end before a call."""
    mode = "train" if trainer.model.training else "eval"
    return {
        "mode": mode,
        "metrics": {name: len(values) for name, values in trainer._metrics[mode].items()},
        "tokens": trainer.state.num_input_tokens_seen,
    }


def added(trainer: Any, before: Mapping[str, Any], *, logs: bool) -> dict[str, Any]:
    """Return what a call has added to a trainer's buffers.

    Args:
        trainer: The trainer.
        before: What :func:`marks` gave before the call.
        logs: Whether the call fills the log of completions. It holds the rows of the last
            generation batch alone, so it is kept as a whole.
    """
    metrics, ends = trainer._metrics[before["mode"]], before["metrics"]
    new = {
        name: list(values)[0 if name == _TOKENS else ends.get(name, 0) :]
        for name, values in metrics.items()
    }
    return {
        "mode": before["mode"],
        "metrics": {name: values for name, values in new.items() if values},
        "tokens": trainer.state.num_input_tokens_seen - before["tokens"],
        "logs": {name: _plain(rows) for name, rows in trainer._logs.items()} if logs else {},
    }


def logged(trainer: Any, count: int) -> int | None:
    """Return where the rows of the last call begin in the log of completions.

    All processes log the rows of all, in the order of their ranks.

    Args:
        trainer: The trainer.
        count: How many rows this process has.

    Returns:
        The place of its first row; None where the log is too short for them all.
    """
    own = trainer.accelerator
    start: int = len(trainer._logs["prompt"]) - (own.num_processes - own.process_index) * count
    return start if start >= 0 else None


def put_back(trainer: Any, recorded: Mapping[str, Any]) -> None:
    """Add to a trainer's buffers what a recorded call added."""
    trainer.state.num_input_tokens_seen += recorded["tokens"]
    metrics = trainer._metrics[recorded["mode"]]
    for name, values in recorded["metrics"].items():
        if name == _TOKENS:
            metrics[name] = [trainer.state.num_input_tokens_seen]
        else:
            metrics[name].extend(values)
    for name, rows in recorded["logs"].items():
        _refill(trainer._logs[name], rows)


def _plain(rows: Any) -> Any:
    """Return the rows of a column, or of several by name, as lists."""
    if isinstance(rows, Mapping):
        return {name: list(column) for name, column in rows.items()}
    return list(rows)


def _refill(log: Any, rows: Any) -> None:
    """Let a column, or several by name, hold these rows."""
    log.clear()
    if not isinstance(rows, Mapping):
        log.extend(rows)
        return
    for name, column in rows.items():
        log[name].extend(column)
