"""Trajectories from columns: fields that have a value for each row.

Columns are told by the names that training frameworks give them: verl's, TRL's, and those that
come to mind in a loop of one's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rollout_cassettes.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

NAMES = {
    "prompt": ("raw_prompt", "messages", "prompt", "prompts", "prompt_text", "input", "question"),
    "response": ("response", "responses", "completion", "completions", "text", "output", "answer"),
    "prompt_ids": ("prompt_ids", "prompts", "prompt_token_ids"),
    "response_ids": ("response_ids", "responses", "completion_ids", "output_ids", "token_ids"),
    "mask": ("response_mask", "completion_mask", "loss_mask", "mask"),
    "log_probs": ("rollout_log_probs", "log_probs", "logprobs", "sampling_per_token_logps"),
    "rewards": ("rm_scores", "token_level_scores", "token_level_rewards", "rewards"),
    "score": ("score", "scores", "reward", "rewards"),
    "uid": ("uid", "uids", "prompt_id"),
    "session": ("session_id", "session"),
}
"""What a part of a trajectory may be called, most telling first."""

_IDS, _NUMBERS = "biu", "biuf"


def length(value: Any) -> int | None:
    """Return how many rows a value has as a column; None if it can't be one."""
    if isinstance(value, (list, tuple)):
        return len(value)
    shape = getattr(value, "shape", None)
    return int(shape[0]) if shape else None


def total(rewards: Array) -> float:
    """Return the sum of rewards; of opposite infinities it is NaN."""
    import numpy as np  # noqa: PLC0415 - importing this library needs no numpy

    with np.errstate(invalid="ignore"):
        return float(rewards.sum(dtype="float64"))


def from_columns(
    columns: Mapping[str, Any],
    prompts: Sequence[str] = (),
    *,
    outputs: Sequence[int] | None = None,
    aside: Sequence[str] = (),
) -> list[Trajectory]:
    """Return the trajectories in columns of one length.

    Args:
        columns: Values by name, each with as many as there are rows: lists, or arrays whose first
            dimension are the rows.
        prompts: The uids of the prompts in the order in which they were asked for, where that is
            known; else they are numbered as they occur.
        outputs: Which of its session's outputs each row is, where a session may have several.
        aside: Names of columns that only repeat what others say, and are no metadata.
    """
    (rows,) = {length(column) for column in columns.values()} or {0}
    found = [_trajectory(columns, row, aside) for row in range(rows or 0)]
    if outputs is not None:
        found = [
            replace(row, output_index=output) for row, output in zip(found, outputs, strict=True)
        ]
    return list(_numbered(found, prompts))


def _trajectory(columns: Mapping[str, Any], row: int, aside: Sequence[str]) -> Trajectory:
    fields = {name: _item(column[row]) for name, column in columns.items()}
    parts, used = _parts(fields)
    metadata = {n: v for n, v in fields.items() if n not in used and n not in aside}
    return Trajectory(row=row, metadata=metadata, **parts)


def _numbered(rows: Iterable[Trajectory], prompts: Sequence[str]) -> Iterator[Trajectory]:
    """Number prompts, and the responses to each, where they have names and no numbers yet."""
    numbers = {uid: number for number, uid in enumerate(dict.fromkeys(prompts))}
    seen: Counter[str] = Counter()
    for row in rows:
        if row.uid is None:
            yield row
            continue
        group = numbers.setdefault(row.uid, len(numbers))
        session = seen[row.uid] if row.session is None else row.session
        seen[row.uid] += 1
        yield replace(row, group=group, session=session)


def _parts(fields: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Find a trajectory's parts among a row's fields, and say which fields they were."""
    parts: dict[str, Any] = {}
    used: set[str] = set()
    for part, names in NAMES.items():
        parts[part] = None
        for name in names:
            value = _READ[part](fields[name]) if name in fields and name not in used else None
            if value is not None:
                parts[part] = value
                used.add(name)
                break
    if parts["score"] is None and parts["rewards"] is not None:
        parts["score"] = total(parts["rewards"])
    return parts, used


def _item(value: Any) -> Any:
    """Return a numpy scalar as Python's own."""
    import numpy as np  # noqa: PLC0415 - importing this library needs no numpy

    return value.item() if isinstance(value, np.generic) else value


# ---- reading the parts


def _vector(value: Any, kinds: str) -> Array | None:
    """Return one number for each token, as an array; None if it is anything else."""
    import numpy as np  # noqa: PLC0415

    if isinstance(value, (list, tuple)):
        if not all(type(item) in (int, float, bool) for item in value):
            return None
        value = np.array(value, np.int64 if not value and kinds == _IDS else None)
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in kinds:
        return None
    return value


def _mask(value: Any) -> Array | None:
    """Return whole numbers, one for each token; floats are, where all of them are 0 or 1."""
    mask = _vector(value, _NUMBERS)
    if mask is None or mask.dtype.kind in _IDS:
        return mask
    return mask.astype("int64") if ((mask == 0) | (mask == 1)).all() else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _prompt(value: Any) -> str | list[Any] | None:
    """Return a text, or a list of chat messages."""
    if isinstance(value, str):
        return value
    if (
        isinstance(value, (list, tuple))
        or getattr(getattr(value, "dtype", None), "kind", "") == "O"
    ):
        messages = list(value)
        if messages and all(isinstance(item, dict) and "role" in item for item in messages):
            return messages
    return None


def _number(value: Any) -> float | None:
    """Return a number as a float; None for an integer that is too large for one."""
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _name(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) else None


_READ: dict[str, Callable[[Any], Any]] = {
    "prompt": _prompt,
    "response": _text,
    "rewards": lambda value: _vector(value, _NUMBERS),
    "score": _number,
    "uid": _name,
    "session": _whole,
    "prompt_ids": lambda value: _vector(value, _IDS),
    "response_ids": lambda value: _vector(value, _IDS),
    "mask": _mask,
    "log_probs": lambda value: _vector(value, _NUMBERS),
}
