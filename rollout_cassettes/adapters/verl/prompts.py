"""The prompts that verl's V1 trainer has registered in TransferQueue.

The trainer registers each prompt under its uid, with a tag that says how far its trajectories are.
A replay registers prompts too, so that checkpoints are what they would be; it marks them with the
uid that each had in the recorded run. So the queue itself holds what belongs together, also
across a checkpoint.

Source: verl 0.9.1, ``verl/trainer/ppo/v1/trainer_base.py`` and ``replay_buffer.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

_WITHHELD_AS = "rollout_cassettes_withheld_as"
"""The tag of a prompt that is not dispatched: its recorded uid, empty where there is none."""

_IN_FLIGHT = ("pending", "running")
"""What verl hands out again when a run goes on from a checkpoint."""


class PromptQueue:
    """The prompts of a partition, in the order in which they were registered, and their rows.

    Args:
        partition: ``"train"`` or ``"val"``.

    Attributes:
        prompts: The tag of each prompt, by uid.
    """

    def __init__(self, partition: str) -> None:
        import transfer_queue as tq  # noqa: PLC0415 - this module is imported where verl may not be

        items = (tq.kv_list(partition) or {}).get(partition, {})
        self._partition = partition
        self._rows = [key for key, tag in items.items() if not tag.get("is_prompt")]
        self.prompts = {key: tag for key, tag in items.items() if tag.get("is_prompt")}

    @property
    def withheld(self) -> dict[str, str]:
        """The recorded uid of each prompt that is not dispatched, by its uid."""
        marks = {uid: tag.get(_WITHHELD_AS) for uid, tag in self.prompts.items()}
        return {uid: mark for uid, mark in marks.items() if mark is not None}

    def names(self) -> dict[str, str]:
        """Return what prompts are called now, by their recorded uid."""
        return named(self.withheld)

    def clear(self, uids: Iterable[str], *, keep: Iterable[str] = ()) -> None:
        """Forget prompts and their rows, as sampling or evicting them does.

        Args:
            uids: The prompts.
            keep: Rows that stay.
        """
        import transfer_queue as tq  # noqa: PLC0415

        gone, kept = self.prompts.keys() & set(uids), set(keep)
        rows = [key for key in self._rows_of(gone) if key not in kept]
        if gone:
            tq.kv_clear(keys=[*gone, *rows], partition_id=self._partition)

    def unmark(self) -> None:
        """Take the marks off: the trainer dispatches all that is not done."""
        import transfer_queue as tq  # noqa: PLC0415

        uids = list(self.withheld)
        if uids:
            tags = [{_WITHHELD_AS: None} for _ in uids]
            tq.kv_batch_put(keys=uids, partition_id=self._partition, tags=tags)

    def release(self, step: int) -> Any:
        """Take the marks off, and return the prompts to be dispatched; None where all are done.

        A checkpoint may have brought prompts that are done, with their rows.
        """
        import transfer_queue as tq  # noqa: PLC0415
        from verl.utils.tensordict_utils import assign_non_tensor_data  # noqa: PLC0415

        uids = [uid for uid in self.withheld if self.prompts[uid]["status"] in _IN_FLIGHT]
        self.unmark()
        if not uids:
            return None
        rows = self._rows_of(set(uids))
        if rows:
            tq.kv_clear(keys=rows, partition_id=self._partition)
        batch = tq.kv_batch_get(keys=uids, partition_id=self._partition)
        assign_non_tensor_data(batch, "global_steps", step)
        tags = [{"status": "pending", "global_steps": step} for _ in uids]
        tq.kv_batch_put(keys=uids, partition_id=self._partition, tags=tags)
        return batch

    def _rows_of(self, uids: Collection[str]) -> list[str]:
        return [key for key in self._rows if key.rsplit("_", 2)[0] in uids]


def named(withheld: Mapping[str, str]) -> dict[str, str]:
    """Return what prompts are called now, by their recorded uid.

    Args:
        withheld: The recorded uid of each prompt, by its uid; empty where there is none.
    """
    return {recorded: uid for uid, recorded in withheld.items() if recorded}


def register(
    names: Mapping[str, str], partition: str, step: int | None = None, columns: Any = None
) -> None:
    """Register prompts that are not dispatched.

    Args:
        names: Their recorded uids, by their uids; empty where there is none.
        partition: ``"train"`` or ``"val"``.
        step: The trainer's step; None where the trainer has registered them itself.
        columns: The prompts' fields, for a trainer that checkpoints them.
    """
    import transfer_queue as tq  # noqa: PLC0415

    own: dict[str, Any] = {}
    if step is not None:
        own = {"is_prompt": True, "status": "pending", "global_steps": step}
    tags = [own | {_WITHHELD_AS: recorded} for recorded in names.values()]
    if tags:
        tq.kv_batch_put(keys=list(names), partition_id=partition, tags=tags, fields=columns)
