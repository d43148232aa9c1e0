"""The adapter for verl's V1 trainer: submit and sample are the halves of one interaction.

The trainer hands prompts out in ``PPOTrainer._submit_batch_to_rollout``. Agent loops put their
trajectories into TransferQueue, where ``ReplayBuffer.sample`` finds them: it returns their keys
(``{uid}_{session}_{index}``) and tags, and the trainer reads the rows by key, and clears them at
the end of the step. A replay withholds the prompts, and at sample puts the recorded rows into
TransferQueue under the uids of the prompts that were withheld.

Source: verl 0.9.1, ``verl/trainer/ppo/v1/``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Half

NAME = "verl_v1"

_SUBMIT = EntryPoint(
    adapter=NAME,
    module="verl.trainer.ppo.v1.trainer_base",
    qualname="PPOTrainer._submit_batch_to_rollout",
    framework="verl",
    half=Half.SUBMIT,
    overrides=True,
)
_SAMPLE = EntryPoint(
    adapter=NAME,
    module="verl.trainer.ppo.v1.replay_buffer",
    qualname="ReplayBuffer.sample",
    framework="verl",
    half=Half.SAMPLE,
    overrides=True,
)

_STEP_TAGS = ("global_steps", "min_global_steps", "max_global_steps")


class Row(NamedTuple):
    """One trajectory to be handed back.

    Attributes:
        source: Its row in the recording.
        old: The uid that its prompt had when it was recorded.
        new: The uid that its prompt has now.
    """

    source: int
    old: str
    new: str


class VerlV1(Adapter):
    """Records and replays the training rollouts of verl's V1 trainer in sync mode."""

    name = NAME
    step_kind = "trainer step"
    entry_points = (_SUBMIT, _SAMPLE)
    distributions = ("verl", "TransferQueue", "tensordict", "torch")

    def place(self, call: Call) -> Place | None:
        """Return the trainer's step; None for validation, which stays live.

        Raises:
            CassetteError: If the trainer is in one of verl's asynchronous modes.
        """
        if call.point.half is Half.SAMPLE and _argument(call, "partition_id", 2) != "train":
            return None
        owner = call.args[0]  # the trainer, or its replay buffer
        _refuse_async(owner.trainer_mode)
        if call.point.half is Half.SUBMIT:
            return Place(owner.global_steps)
        return Place(_argument(call, "global_steps", 1))

    def request(self, call: Call) -> dict[str, Any]:
        """Return the prompts of a submit: their uids, and the dataset's own fields."""
        batch = _argument(call, "batch", 1)
        uids = [str(uid) for uid in batch.get("uid").tolist()]
        fields = [name for name in batch.keys() if _is_column(batch.get(name))]  # noqa: SIM118
        return {"uid": uids, "prompts": batch.select(*[name for name in fields if name != "uid"])}

    def withhold(self, call: Call) -> int:
        """Return the number of prompts, as a submit does that dispatches them."""
        return len(_argument(call, "batch", 1))

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Read the sampled rows from TransferQueue, before the trainer clears them."""
        import transfer_queue as tq  # noqa: PLC0415 - this module is imported where verl may not be

        batch, metrics = result
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id)
        return {"batch": batch, "data": data, "metrics": metrics}

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> tuple[Any, dict[str, Any]]:
        """Put the recorded rows into TransferQueue under the live uids; return their keys."""
        import transfer_queue as tq  # noqa: PLC0415
        from transfer_queue import KVBatchMeta  # noqa: PLC0415

        batch = recorded.response["batch"]
        old_uids = [uid for submission in recorded.request for uid in submission["uid"]]
        new_uids = [uid for submission in submitted for uid in submission["uid"]]
        rows = list(_assign(batch.keys, old_uids, new_uids))
        keys = [row.new + batch.keys[row.source][len(row.old) :] for row in rows]
        tags = [_shifted(_renamed(batch.tags[row.source], row), shift) for row in rows]
        data = _restored_data(recorded.response["data"], rows, shift)
        tq.kv_batch_put(keys=keys, partition_id=batch.partition_id, fields=data, tags=tags)
        meta = KVBatchMeta(
            keys=keys,
            tags=tags,
            partition_id=batch.partition_id,
            fields=batch.fields,
            extra_info=batch.extra_info,
        )
        return meta, recorded.response["metrics"]

    def rows(self, request: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return each prompt's fields; its uid is new in every run."""
        return [row for submission in request for row in _rows_of(submission["prompts"])]


def _refuse_async(mode: str) -> None:
    if mode != "sync":
        raise CassetteError(
            f"The adapter {NAME!r} covers verl's sync trainer; this one is {mode!r}.",
            fixes=["Set trainer.v1.trainer_mode=sync."],
        )


def _argument(call: Call, name: str, position: int) -> Any:
    """Return an argument by name or position: custom samplers may take ``*args, **kwargs``."""
    return call.kwargs[name] if name in call.kwargs else call.args[position]


def _is_column(value: Any) -> bool:
    """Tell whether a field has a value for each row, unlike the batch-wide NonTensorData."""
    from tensordict import NonTensorData  # noqa: PLC0415

    return not isinstance(value, NonTensorData)


def _rows_of(prompts: Any) -> list[dict[str, Any]]:
    columns = {name: _column(prompts.get(name)) for name in sorted(prompts.keys())}
    return [
        {name: column[row] for name, column in columns.items()}
        for row in range(prompts.batch_size[0])
    ]


def _column(field: Any) -> Sequence[Any]:
    """Return a field's value for each row."""
    import torch  # noqa: PLC0415

    column: Sequence[Any] = field.unbind() if isinstance(field, torch.Tensor) else field.tolist()
    return column


def _assign(keys: Sequence[str], old_uids: Sequence[str], new_uids: Sequence[str]) -> Iterator[Row]:
    """Give each live prompt the rows of a recorded one, in the recorded order.

    Where more prompts are live than were recorded, the recorded ones are gone through again;
    where fewer are, the last of them are left out.
    """
    for start in range(0, len(new_uids), len(old_uids)):
        lap = dict(zip(old_uids, new_uids[start : start + len(old_uids)], strict=False))
        for source, key in enumerate(keys):
            old = key.rsplit("_", 2)[0]
            if old in lap:
                yield Row(source, old, lap[old])


def _restored_data(data: Any, rows: Sequence[Row], shift: int | None) -> Any:
    """Return the recorded fields for these rows, with the live uids in them."""
    from verl.utils.tensordict_utils import index_select_tensor_dict  # noqa: PLC0415

    sources = [row.source for row in rows]
    if sources != list(range(len(data))):
        data = index_select_tensor_dict(data, sources)
    for name in list(data.keys()):
        _rename_field(data, name, rows, shift)
    return data


def _rename_field(data: Any, name: str, rows: Sequence[Row], shift: int | None) -> None:
    import torch  # noqa: PLC0415
    from tensordict import NonTensorData, NonTensorStack  # noqa: PLC0415

    field = data.get(name)
    if isinstance(field, torch.Tensor):
        if shift and name in _STEP_TAGS:
            data[name] = field + shift
        return
    before = field.tolist()
    after = [_renamed(value, row) for value, row in zip(before, rows, strict=True)]
    if name in _STEP_TAGS:
        after = [_later(value, shift) for value in after]
    if any(new is not old for new, old in zip(after, before, strict=True)):
        data[name] = NonTensorStack(*[NonTensorData(value) for value in after])


def _renamed(value: Any, row: Row) -> Any:
    """Return a value with the old uid replaced wherever it stands, alone or at the start of a key.

    A value without the uid is returned as the object it is.
    """
    if isinstance(value, str):
        stands = value == row.old or value.startswith(f"{row.old}_")
        return row.new + value[len(row.old) :] if stands else value
    if type(value) not in (dict, list, tuple):
        return value
    before = list(value.values()) if type(value) is dict else list(value)
    after = [_renamed(item, row) for item in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return value
    return dict(zip(value, after, strict=True)) if type(value) is dict else type(value)(after)


def _shifted(tag: dict[str, Any], shift: int | None) -> dict[str, Any]:
    """Return a tag whose step counts are moved along with the step, so that staleness stays."""
    return {
        name: _later(value, shift) if name in _STEP_TAGS else value for name, value in tag.items()
    }


def _later(value: Any, shift: int | None) -> Any:
    return value + shift if shift and isinstance(value, int) else value
