"""What ``tq_batch.pt`` holds: the rows that V1's trainer sampled, with their keys and tags.

It holds no submits. What a replay needs of one is made up from the rows: the uids of the prompts,
in the order in which their first rows were sampled, and the data set's fields of those rows, as
the agent loop and the reward function left them. Of prompts without a trajectory, whose sessions
all failed, nothing is left but that there must have been more of them.

Source: verl 0.9.1, ``verl/utils/skip/rollout_skip.py``, ``verl/trainer/ppo/v1/agent_loop_tq.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollout_cassettes.adapters import Exchange

PARTITION = "train"
"""The partition of all rows that are dumped."""

_MADE = frozenset(
    {
        "prompts",
        "responses",
        "response_mask",
        "rollout_log_probs",
        "routed_experts",
        "rm_scores",
        "teacher_ids",
        "teacher_logprobs",
        "num_turns",
        "metrics",
        "extra_fields",
        "mm_processor_kwargs",
        "mm_processor_output",
        "multi_modal_inputs",
        "loss_mask",
        "input_ids",
        "position_ids",
        "uid",
        "session_id",
        "global_steps",
        "agent_name",
    }
)
"""The fields of a row that the agent loop made, or that are new in every run."""


def exchange(payload: dict[str, Any], prompts: int) -> Exchange:
    """Return dumped rows as the V1 adapter records them.

    Args:
        payload: The dump: ``tensordict``, ``keys`` and ``tags``.
        prompts: How many prompts were submitted at least.
    """
    from transfer_queue import KVBatchMeta  # noqa: PLC0415

    data, keys = payload["tensordict"], payload["keys"]
    first: dict[str, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key.rsplit("_", 2)[0], row)
    batch = KVBatchMeta(keys=list(keys), tags=payload["tags"], partition_id=PARTITION)
    failed = [f"failed-{number}" for number in range(prompts - len(first))]
    request = [{"uid": [*first, *failed], "prompts": _prompts(data, list(first.values()))}]
    return Exchange(request, {"batch": batch, "data": data, "metrics": {}, "left": []})


def joined(batches: Sequence[Exchange]) -> list[Exchange]:
    """Return the batches of one step as the V1 adapter records them.

    All of its prompts are submitted before the first is sampled; those of later batches are left.
    """
    submitted = [submission for batch in batches for submission in batch.request]
    uids = [[uid for each in batch.request for uid in each["uid"]] for batch in batches]
    return [
        Exchange(
            [] if number else submitted,
            batch.response | {"left": [uid for later in uids[number + 1 :] for uid in later]},
        )
        for number, batch in enumerate(batches)
    ]


def _prompts(data: Any, rows: list[int]) -> Any:
    """Return the data set's fields of these rows, dense again where TransferQueue made them jagged."""
    import torch  # noqa: PLC0415
    from verl.utils.tensordict_utils import index_select_tensor_dict  # noqa: PLC0415

    names = [name for name in data.keys() if name not in _MADE]  # noqa: SIM118
    prompts = index_select_tensor_dict(data.select(*names), rows)
    for name in names:
        column = prompts.get(name)
        if isinstance(column, torch.Tensor) and column.is_nested:
            values = column.unbind()
            if len({value.shape for value in values}) == 1:
                prompts[name] = torch.stack(values)
    return prompts
