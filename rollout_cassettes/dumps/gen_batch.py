"""What ``gen_batch.dp`` holds: the output of a V0 or a fully asynchronous rollout, a DataProto.

It holds no request. What a replay needs of one is made up from the output: which rows belong to
one prompt.

Source: verl 0.9.1, ``verl/experimental/agent_loop/agent_loop.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_cassettes.adapters import Adapter, Exchange, VerlFullyAsync, VerlV0

_ECHOED = "uid"
"""The column of the request that is new in every run.

Where rewards are computed after generation, it is handed back in the output; a replay takes it
from the live request. Other columns are handed back too, but can't be told from those that the
agent loop made: they are replayed as they were dumped.
"""


def adapter_of(output: Any) -> Adapter:
    """Tell which trainer dumped an output.

    V0's manager replaces the workers' metrics by their aggregates, which it calls timing; the
    fully asynchronous one hands on what a single worker returned.
    """
    return VerlFullyAsync() if "metrics" in output.meta_info else VerlV0()


def exchange(output: Any, step: int, n: int | None) -> Exchange:
    """Return a dumped output as the V0 adapters record it.

    Args:
        output: The DataProto.
        step: The step that it was dumped at.
        n: How many trajectories a prompt has, if that is known.
    """
    import numpy as np  # noqa: PLC0415

    columns = dict(output.non_tensor_batch)
    order = list(columns)
    uids = columns.pop(_ECHOED, None)
    if uids is None:
        uids = np.array([f"{step}-{group}" for group in _groups(output, n)], dtype=object)
    # One of the dumped class: it tells how the request is stored, too.
    request = type(output)(
        batch=None, non_tensor_batch={"uid": uids}, meta_info={"global_steps": step}
    )
    kept = type(output)(
        batch=output.batch, non_tensor_batch=columns, meta_info=dict(output.meta_info)
    )
    echoed = [_ECHOED] if _ECHOED in order else []
    return Exchange(request, {"output": kept, "echoed": echoed, "order": order, "added": {}})


def _groups(output: Any, n: int | None) -> Iterator[int]:
    """Give each row the number of its prompt: up to ``n`` rows in a row with the same tokens."""
    import torch  # noqa: PLC0415

    prompts = output.batch["prompts"]
    group, size = 0, 0
    for row in range(len(output)):
        same = row > 0 and torch.equal(prompts[row], prompts[row - 1])
        if row > 0 and (not same or size == n):
            group, size = group + 1, 0
        size += 1
        yield group
