"""A batch of trajectories as padded tensors: for a loss that one writes by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Batch:
    """Trajectories as tensors. Prompts are padded on the left, responses on the right.

    What was not recorded of each row is None.

    Attributes:
        step: The step of the batch.
        phase: ``"train"``, ``"val"``, ….
        input_ids: Prompts and responses, int64. Shape ``[batch, prompt_length + response_length]``.
        attention_mask: 1 where there is a token, int64. Shape as of ``input_ids``.
        position_ids: Positions, counted from the first token, int64. Shape as of ``input_ids``.
        responses: The responses alone, int64. Shape ``[batch, response_length]``.
        response_mask: 1 where the model wrote the token, int64; all tokens of a row without a mask.
            Shape as of ``responses``.
        log_probs: Log-probabilities at sampling, in nats, float32. Shape as of ``responses``.
        rewards: Rewards by token, float32. Shape as of ``responses``.
        scores: The reward of each trajectory, float32. Shape ``[batch]``.
        groups: The number of each row's prompt, int64. Shape ``[batch]``.
        trajectories: The rows themselves.
    """

    step: int
    phase: str
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    position_ids: torch.Tensor
    responses: torch.Tensor
    response_mask: torch.Tensor
    log_probs: torch.Tensor | None
    rewards: torch.Tensor | None
    scores: torch.Tensor | None
    groups: torch.Tensor | None
    trajectories: list[Trajectory]


def to_batch(
    rows: Sequence[Trajectory], device: str | torch.device | None = None, pad_id: int = 0
) -> Batch:
    """Return trajectories of one step as padded tensors.

    Args:
        rows: The trajectories.
        device: Where tensors go; the CPU by default.
        pad_id: What stands in ``input_ids`` and ``responses`` where there is no token.

    Raises:
        CassetteError: If the recording holds no tokens.
    """
    import numpy as np  # noqa: PLC0415 - importing this library needs neither
    import torch  # noqa: PLC0415

    def tensor(array: Any) -> torch.Tensor | None:
        return None if array is None else torch.as_tensor(array, device=device)

    answers = _column(rows, "response_ids")
    if not rows or answers is None:
        raise CassetteError(
            "The recording holds no tokens of responses, so it makes no batch of tensors.",
            fixes=["Use what was recorded as it is: interaction.response."],
        )
    prompts = _column(rows, "prompt_ids") or [np.zeros(0, np.int64) for _ in rows]
    asked, answered = ([np.ones(len(ids)) for ids in part] for part in (prompts, answers))
    masks = [
        ones if row.mask is None else row.mask for row, ones in zip(rows, answered, strict=True)
    ]
    attended = np.hstack([_padded(asked, "int64", left=True), _padded(answered, "int64")])
    responses = _padded(answers, "int64", pad_id)
    made = {
        "input_ids": np.hstack([_padded(prompts, "int64", pad_id, left=True), responses]),
        "attention_mask": attended,
        "position_ids": np.maximum(attended.cumsum(axis=1) - 1, 0),
        "responses": responses,
        "response_mask": _padded(masks, "int64"),
        "log_probs": _padded(_column(rows, "log_probs"), "float32"),
        "rewards": _padded(_column(rows, "rewards"), "float32"),
        "scores": np.array(scores, np.float32) if (scores := _column(rows, "score")) else None,
        "groups": np.array(groups, np.int64) if (groups := _column(rows, "group")) else None,
    }
    tensors: dict[str, Any] = {name: tensor(array) for name, array in made.items()}
    return Batch(rows[0].step, rows[0].phase, **tensors, trajectories=list(rows))


def _column(rows: Sequence[Trajectory], name: str) -> list[Any] | None:
    """Return a part of each row; None where a row lacks it."""
    values = [getattr(row, name) for row in rows]
    return None if any(value is None for value in values) else values


def _padded(parts: list[Any] | None, dtype: str, pad: float = 0, *, left: bool = False) -> Any:
    """Put rows of different lengths into one array. Shape ``[len(parts), longest]``."""
    import numpy as np  # noqa: PLC0415

    if parts is None:
        return None
    made = np.full((len(parts), max(map(len, parts))), pad, dtype)
    for target, part in zip(made, parts, strict=True):
        if len(part):
            target[slice(-len(part), None) if left else slice(len(part))] = part
    return made
