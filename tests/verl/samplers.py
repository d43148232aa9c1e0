"""Replay buffers with an order of their own, chosen by `trainer.v1.sampler.custom_sampler`."""

from __future__ import annotations

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync


def order_by_content(batch):
    """Put rows in the order of their prompt's index, then of their tokens.

    verl 0.9.1 returns rows as they finished, and the session ids of a group follow the order in
    which its requests happened to arrive: only content is the same in two live runs.
    """
    if not batch.keys:
        return
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=["index", "responses"]
    )
    responses = [row.tolist() for row in data["responses"].unbind()]
    content = list(zip(data["index"], responses, strict=True))
    batch.reorder(sorted(range(len(content)), key=content.__getitem__))


class SortedReplayBuffer(ReplayBuffer):
    """verl's synchronous buffer with rows in a repeatable order."""

    def sample(self, *args, **kwargs):
        """Sample, then sort."""
        batch, metrics = super().sample(*args, **kwargs)
        order_by_content(batch)
        return batch, metrics


class SortedReplayBufferAsync(ReplayBufferAsync):
    """verl's asynchronous buffer with rows in a repeatable order."""

    def sample(self, *args, **kwargs):
        """Sample, then sort."""
        batch, metrics = super().sample(*args, **kwargs)
        order_by_content(batch)
        return batch, metrics
