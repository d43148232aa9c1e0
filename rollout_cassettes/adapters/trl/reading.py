"""Trajectories from batches of TRL's, for people who look at them.

A tuple is what ``_generate`` returned: it says which of its items is which by what they hold, since
releases and trainers differ in their number. A dict is what ``_generate_and_score_completions``
returned; texts and rewards are in the trainer's log of completions.

Source: trl 1.16.0, ``trl/trainer/grpo_trainer.py`` and ``rloo_trainer.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rollout_cassettes.adapters.fitting import Groups
from rollout_cassettes.trajectories import Trajectory


def trajectories(request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Trajectory]:
    """Return a trajectory for each row that was asked for.

    Args:
        request: What was recorded of the call, as plain containers and numpy arrays.
        response: What was recorded of its answer.
    """
    asked, output = request["rows"], response["output"]
    size = Groups.of(len(asked), request["num_generations"]).size
    rows = _scored(response) if isinstance(output, Mapping) else _generated(output)
    found = []
    for row, (columns, parts) in enumerate(zip(asked, rows, strict=True)):
        told = {name: value for name, value in columns.items() if name != "prompt"}
        parts["metadata"] = told | parts["metadata"]
        parts |= {"row": row, "group": row // size, "session": row % size}
        found.append(Trajectory(prompt=columns.get("prompt"), **parts))
    return found


# ---- what was generated


def _generated(output: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Give the parts of each row of a tuple, prompt ids and completion ids first."""
    import numpy as np  # noqa: PLC0415 - importing this library needs no numpy

    prompts, completions, *others = output
    columns = [each for each in others if isinstance(each, list) and len(each) == len(completions)]
    extra = next((each for each in others if isinstance(each, Mapping)), {})
    for row, ids in enumerate(completions):
        parts: dict[str, Any] = {
            "prompt_ids": np.array(prompts[row], np.int64),
            "response_ids": np.array(ids, np.int64),
        }
        for column in columns:
            parts |= _part(column[row], len(ids))
        told = {name: each[row] for name, each in extra.items() if len(each) == len(completions)}
        yield {**parts, "metadata": told | parts.pop("metadata", {})}


def _part(value: Any, tokens: int) -> dict[str, Any]:
    """Return what a row's value is: its text, its mask, or its log-probs; nothing if it is neither."""
    import numpy as np  # noqa: PLC0415

    if _is_text(value):
        return _said(value)
    if not isinstance(value, list) or len(value) != tokens or not value:
        return {}
    if all(isinstance(each, int) for each in value):
        return {"mask": np.array(value, np.int64)}
    if all(each is None or isinstance(each, float) for each in value):
        return {"log_probs": np.array(value, np.float64)}  # None, of a tool's tokens, is NaN
    return {}


def _is_text(value: Any) -> bool:
    """Tell whether it is a text, or chat messages."""
    messages = value if isinstance(value, list) and value else [None]
    is_chat = all(isinstance(each, Mapping) and "role" in each for each in messages)
    return isinstance(value, str) or is_chat


def _said(completion: Any) -> dict[str, Any]:
    """Return the text of a completion; its messages too, where it has several."""
    if isinstance(completion, str):
        return {"response": completion}
    texts = [each.get("content") for each in completion]
    response = "\n\n".join(text for text in texts if isinstance(text, str))
    return {"response": response, "metadata": {"completion": completion} if texts[1:] else {}}


# ---- what was scored


def _scored(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the parts of each row of a dict of padded tensors."""
    import numpy as np  # noqa: PLC0415

    output = response["output"]
    for row, ids in enumerate(output["completion_ids"]):
        mask = output["completion_mask"][row].astype(np.int64)
        kept = mask.nonzero()[0]  # none of a truncated completion that is masked out as a whole
        end = kept[-1] + 1 if len(kept) else len(ids)
        written = (
            mask * output["tool_mask"][row].astype(np.int64) if "tool_mask" in output else mask
        )
        parts: dict[str, Any] = {
            "prompt_ids": output["prompt_ids"][row][output["prompt_mask"][row].astype(bool)],
            "response_ids": ids[:end],
            "mask": written[:end],
            "metadata": {"advantage": output["advantages"][row].item()},
        }
        if "sampling_per_token_logps" in output:
            parts["log_probs"] = output["sampling_per_token_logps"][row][:end]
        yield _logged(parts, response, row)


def _logged(parts: dict[str, Any], response: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Add to a row's parts what the trainer logged of it."""
    start = response.get("logged")
    if start is None:
        return parts
    logs = response["buffers"]["logs"]
    said = _said(logs["completion"][start + row])
    rewards = {name: column[start + row] for name, column in logs["rewards"].items()}
    weighted = zip(rewards.values(), response["reward_weights"], strict=True)
    score = sum(reward * weight for reward, weight in weighted if not math.isnan(reward))
    told = {f"rewards/{name}": value for name, value in rewards.items()}
    metadata = {**said.get("metadata", {}), **parts["metadata"], **told}
    return {**parts, **said, "score": score, "metadata": metadata}
