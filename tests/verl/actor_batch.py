"""What the trainer hands to its actor."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
import transfer_queue as tq


@dataclass(frozen=True)
class ActorBatch:
    """What one `update_actor` was called with.

    Attributes:
        keys: The rows' keys in TransferQueue, in the order of training.
        tags: The rows' tags.
        partition_id: The partition that they are in.
        extra_info: What travelled with the batch.
        fields: Every field of every row, as lists of tensors or objects.
    """

    keys: list[str]
    tags: list[dict[str, Any]]
    partition_id: str
    extra_info: dict[str, Any]
    fields: dict[str, list[Any]]

    @classmethod
    def of(cls, batch):
        """Copy a batch, with the rows that are in TransferQueue for it now."""
        return cls(
            keys=list(batch.keys),
            tags=copy.deepcopy(batch.tags),
            partition_id=batch.partition_id,
            extra_info=copy.deepcopy(batch.extra_info),
            fields=copy.deepcopy(read_rows(batch)),
        )


def read_rows(batch, *names):
    """Give fields of a batch in TransferQueue as lists of rows; all fields if none is named."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=list(names) or None
    )
    return {name: _rows(data.get(name)) for name in data.keys()}  # noqa: SIM118


def _rows(column):
    return list(column.unbind()) if isinstance(column, torch.Tensor) else column.tolist()
