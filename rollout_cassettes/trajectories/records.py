"""Trajectories as records: for JSON, for data frames and data sets, and for verl's viewer."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rollout_cassettes.trajectories.trajectory import Trajectory

PARTS = (
    *("step", "phase", "row", "uid", "group", "session", "output_index", "prompt", "response"),
    *("prompt_ids", "response_ids", "mask", "log_probs", "rewards", "score"),
)


def record(row: Trajectory) -> dict[str, Any]:
    """Return all of a trajectory: its parts, then its other fields in ``metadata``."""
    return {**{name: plain(getattr(row, name)) for name in PARTS}, "metadata": plain(row.metadata)}


def columns(rows: Iterable[Trajectory]) -> dict[str, list[Any]]:
    """Return trajectories as columns, for a table.

    Arrays stay arrays. The other fields of the rows are columns too, where no part of a trajectory
    has their name; what has parts itself, such as a dict, is JSON text there, as are the messages
    of a prompt.
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row.metadata if name not in PARTS)
    parts = {name: [getattr(row, name) for row in listed] for name in PARTS}
    others = {name: [row.metadata.get(name) for row in listed] for name in names}
    return {name: _of_one_type(column) for name, column in {**parts, **others}.items()}


def viewed(row: Trajectory) -> dict[str, Any]:
    """Return a trajectory in the columns that verl writes to its ``trainer.rollout_data_dir``.

    Where the recording holds a response as tokens alone, ``output`` are their ids.

    Source: verl 0.9.1, ``verl/trainer/ppo/v1/trainer_base.py``, ``_write_generations``.
    """
    answer = row.response
    if answer is None and row.response_ids is not None:
        answer = " ".join(map(str, row.response_ids.tolist()))
    return {
        "input": row.prompt_text,
        "output": answer,
        "gts": plain(_truth(row)),
        "score": plain(row.score),
        "step": row.step,
        "uid": row.key,
        **{name: plain(value) for name, value in reward_info(row).items() if name != "score"},
    }


def plain(value: Any) -> Any:
    """Return a value as JSON has it: what JSON lacks is null (NaN) or text (bytes, in base64)."""
    if value is None or isinstance(value, (bool, int, str, float)):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def _of_one_type(column: list[Any]) -> list[Any]:
    """Return a column's cells as they are, where a table can hold them; else as JSON text."""
    kinds = {_kind(cell) for cell in column if cell is not None}
    if kinds != {"str"} and "" not in kinds and (len(kinds) <= 1 or kinds == {"int", "float"}):
        return column
    return [None if cell is None else _encodable(_json(cell)) for cell in column]


def _kind(cell: Any) -> str:
    """Return what kind of cell a table has for a value; nothing where it has none."""
    if getattr(cell, "ndim", 0) == 1 and cell.dtype.kind in "biuf":
        return str(cell.dtype)
    name = type(cell).__name__
    if name == "int" and not -(2**63) <= cell < 2**63:
        return ""
    return name if name in ("bool", "int", "float", "str", "bytes") else ""


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _encodable(text: str) -> str:
    """Return a text as Arrow can hold it; what has no UTF-8, half of a surrogate pair, is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _truth(row: Trajectory) -> Any:
    model = row.metadata.get("reward_model")
    return model.get("ground_truth") if isinstance(model, Mapping) else None


def reward_info(row: Trajectory) -> Mapping[str, Any]:
    """Return what verl's reward function gave beside the score."""
    extra = row.metadata.get("extra_fields")
    sources = (row.metadata, extra if isinstance(extra, Mapping) else {})
    found = (source.get("reward_extra_info") for source in sources)
    return next((info for info in found if isinstance(info, Mapping)), {})
