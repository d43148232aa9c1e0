"""Blocks: what a page keeps compressed until somebody looks at it.

A block is JSON, compressed as zlib does it (what browsers call ``deflate``), in base64. A row of
numbers, such as the log-probs of a response, is a text in it, one character for each number: so
they are as short as their differences are, and are read in one go.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rollout_cassettes.display.arrays import array_type
from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.records import plain

if TYPE_CHECKING:
    import numpy as np

ROWS_EACH = 64
"""How many trajectories share a block of text: few enough to be opened at once."""

_FIRST = 0x23
"""The character that stands for 0: none of those after it, up to the largest, is a surrogate."""

_LARGEST = 50_000
_UNKNOWN = _LARGEST + 1
_LEVEL = 6
_MOST_ITEMS = 64  # of an array among the other fields
_MOST_CHARACTERS = 20_000


def packed(value: Any) -> str:
    """Return a value as a block. It must be what JSON has."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = zlib.compress(text.encode("utf-8", errors="replace"), _LEVEL)
    return base64.b64encode(data).decode("ascii")


def text_block(rows: Sequence[Trajectory]) -> dict[str, Any]:
    """Return what pages of trajectories show of these rows.

    Args:
        rows: As many as go into one block; those that answer one prompt are best in one.
    """
    prompts: dict[str, int] = {}
    told = [_told(row, prompts) for row in rows]
    return {"prompts": [json.loads(prompt) for prompt in prompts], "rows": told}


def _told(row: Trajectory, prompts: dict[str, int]) -> dict[str, Any]:
    prompt = json.dumps(_prompt(row))
    text = None if row.response is None else visible(row.response)
    parts: dict[str, Any] = {
        "prompt": prompts.setdefault(prompt, len(prompts)),
        "text": text,
        "ids": None if row.tokens or row.response_ids is None else row.response_ids.tolist(),
        "logProbs": _hundredths(row.log_probs),
        "rewards": _rewards(row.rewards),
        "masked": _masked(row.mask),
        "uid": row.uid,
        "fields": _short(row.metadata),
    }
    if row.tokens is not None:
        joined = visible("".join(row.tokens))
        parts["tokens"] = numbers(list(map(len, row.tokens)))
        parts["pieces"] = None if joined == text else joined
    return {name: part for name, part in parts.items() if part is not None}


def _prompt(row: Trajectory) -> Any:
    """Return a prompt: text, messages with a role and what they say, token ids, or nothing."""
    if isinstance(row.prompt, str):
        return visible(row.prompt)
    if row.messages is not None:
        return [{"role": visible(role), "text": visible(text)} for role, text in row.messages]
    return None if row.prompt_ids is None else {"ids": row.prompt_ids.tolist()}


def numbers(values: Sequence[int] | np.ndarray[Any, Any]) -> str:
    """Return numbers from 0 to 50,000 as a text with a character for each; larger ones as that."""
    import numpy as np  # noqa: PLC0415 - importing this library needs no numpy

    codes = np.minimum(np.asarray(values, np.int64), _UNKNOWN) + _FIRST
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def _hundredths(log_probs: Any) -> str | None:
    """Return log-probs, in hundredths of a nat below 0; what isn't finite is the largest number."""
    import numpy as np  # noqa: PLC0415

    if log_probs is None:
        return None
    values = log_probs.astype(np.float64) * -100
    known = np.isfinite(values)
    return numbers(
        np.where(known, np.clip(np.where(known, values, 0), 0, _LARGEST).round(), _UNKNOWN)
    )


def _rewards(rewards: Any) -> list[list[float]] | None:
    """Return the places of tokens with a reward, and the rewards."""
    if rewards is None:
        return None
    return [[int(place), plain(float(rewards[place]))] for place in rewards.nonzero()[0]]


def _masked(mask: Any) -> list[list[int]] | None:
    """Return where the mask leaves tokens out: from which place up to which."""
    import numpy as np  # noqa: PLC0415

    if mask is None:
        return None
    edges = np.flatnonzero(np.diff(np.r_[0, mask == 0, 0].astype(np.int8)))
    return [list(pair) for pair in edges.reshape(-1, 2).tolist()]


def _short(value: Any) -> Any:
    """Return the other fields as JSON has them; of large arrays and texts what they are."""
    if getattr(value, "ndim", 0) and value.size > _MOST_ITEMS:
        return array_type(str(value.dtype), value.shape)
    if isinstance(value, dict):
        return {visible(str(name)): _short(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        return visible(value if len(value) <= _MOST_CHARACTERS else value[:_MOST_CHARACTERS] + "…")
    return plain(value)
