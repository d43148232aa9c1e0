"""The adapter for verl's V1 trainer: submit and sample are the halves of one interaction.

The trainer hands prompts out in ``PPOTrainer._submit_batch_to_rollout``: normal batches, those that
warm an asynchronous trainer up, and refills for groups that were evicted. Agent loops put their
trajectories into TransferQueue, where ``ReplayBuffer.sample`` finds them: it returns their keys
and tags, and the trainer reads the rows by key, and clears them at the end of the step. Validation
does the same, but hands its prompts to the agent loops directly.

A replay registers the prompts and hands them to nobody, and at sample puts the recorded rows into
TransferQueue under the uids that the prompts have now. What is sampled may have been submitted
steps before: the queue itself remembers which prompt is which.

Source: verl 0.9.1, ``verl/trainer/ppo/v1/``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rollout_cassettes.adapters.adapter import Exchange, Place
from rollout_cassettes.adapters.excerpt import (
    Excerpt,
    Group,
    Skeletons,
    columns_of,
    rows_of,
    without,
)
from rollout_cassettes.adapters.verl import run
from rollout_cassettes.adapters.verl.adapter import VerlAdapter
from rollout_cassettes.adapters.verl.prompts import PromptQueue, named, register
from rollout_cassettes.adapters.verl.rows import (
    Rollout,
    as_recorded,
    fitted,
    restored_data,
    restored_tag,
)
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "verl_v1"

_TRAINER = "verl.trainer.ppo.v1.trainer_base:PPOTrainer"
_BUFFER = "verl.trainer.ppo.v1.replay_buffer:ReplayBuffer"
_ASYNC_BUFFER = "verl.trainer.ppo.v1.replay_buffer:ReplayBufferAsync"
_MANAGER = "verl.experimental.agent_loop.agent_loop:AgentLoopManager"

_ASIDE = ("input_ids", "position_ids", "loss_mask", "dummy_tensor", "prompt")
"""Fields of a row that repeat others."""


def _point(owner: str, method: str, role: Role, since: str = "") -> EntryPoint:
    target = f"{owner}.{method}"
    return EntryPoint.to(NAME, target, framework="verl", role=role, since=since, overrides=True)


_SUBMIT = _point(_TRAINER, "_submit_batch_to_rollout", Role.SUBMIT)
_RESUBMIT = _point(_TRAINER, "_reissue_inflight_prompts", Role.RESUBMIT)
_VALIDATE = _point(_MANAGER, "generate_sequences", Role.SUBMIT)
_SAMPLE = _point(_BUFFER, "sample", Role.SAMPLE)
_COUNT = _point(_ASYNC_BUFFER, "get_sampleable_count", Role.POLL, since="0.9.1")
_WAIT = _point(_ASYNC_BUFFER, "wait_for_sampleable", Role.POLL, since="0.9.1")


class VerlV1(VerlAdapter):
    """Records and replays the rollouts of verl's V1 trainer, in all of its modes."""

    name = NAME
    step_kind = "trainer step"
    skip_section = "rollout_tq"
    entry_points = (
        *(_SUBMIT, _RESUBMIT, _VALIDATE, _SAMPLE, _COUNT, _WAIT),
        *run.entry_points(NAME, f"{_TRAINER}.fit"),
    )
    distributions = ("verl", "TransferQueue", "tensordict", "torch")

    def place(self, call: Call) -> Place | None:
        """Return the trainer's step, and the partition as the phase."""
        match call.point:
            case EntryPoint(role=Role.SAMPLE | Role.POLL):
                return Place(_argument(call, "global_steps", 1), _argument(call, "partition_id", 2))
            case point if point == _VALIDATE:
                return _validation(_argument(call, "prompts", 1))
            case EntryPoint(role=Role.RESUBMIT) if call.args[0].trainer_mode == "sync":
                return None  # there is never anything in flight
            case _:
                return Place(call.args[0].global_steps)

    def request(self, call: Call) -> dict[str, Any]:
        """Return the prompts of a submit: their uids, and the dataset's own fields."""
        batch = _submitted(call)
        uids = [str(uid) for uid in batch.get("uid").tolist()]
        columns = [name for name in _columns(batch) if name != "uid"]
        return {"uid": uids, "prompts": batch.select(*columns)}

    def withhold(self, call: Call, recorded: Sequence[Any], submitted: Sequence[Any]) -> int | None:
        """Register the prompts as the trainer does, marked with their recorded uids."""
        if call.point == _RESUBMIT:
            restored = PromptQueue(TRAIN)
            register({uid: restored.withheld.get(uid, uid) for uid in restored.prompts}, TRAIN)
            return 0
        names = _paired(recorded, submitted)
        if call.point == _VALIDATE:
            register(names, "val")
            return None
        trainer, batch = call.args[0], _submitted(call)
        # Prompts are checkpointed where they may be in flight at the end of a step.
        columns = None if trainer.trainer_mode == "sync" else batch.select(*_columns(batch))
        register(names, TRAIN, trainer.global_steps, columns)
        return len(batch)

    def refill(self, call: Call, recorded: Sequence[Any]) -> None:
        """Draw the prompts that took the place of evicted ones."""
        for submission in recorded:
            call.args[0].refill_fn(len(submission["uid"]))

    def release(self, call: Call) -> None:
        """Dispatch the prompts that no recorded sample had, as they are in flight in a live run."""
        if call.point == _RESUBMIT:
            PromptQueue(TRAIN).unmark()
        if call.point != _SUBMIT or call.args[0].trainer_mode == "sync":
            return
        trainer = call.args[0]
        batch = PromptQueue(TRAIN).release(trainer.global_steps)
        if batch is not None:
            trainer.agent_loop_manager.generate_sequences(batch)

    def poll(self, call: Call) -> Any:
        """Answer that all prompts in the queue are done: a replay waits for none."""
        uids = set(PromptQueue(TRAIN).prompts)
        return len(uids) if call.point == _COUNT else (uids, {})

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> Any:
        """Read the sampled rows from TransferQueue, before the trainer clears them."""
        import transfer_queue as tq  # noqa: PLC0415 - this module is imported where verl may not be

        if call.point == _COUNT:
            return result
        if call.point == _WAIT:
            uids, metrics = result
            return {"uids": sorted(uids), "metrics": metrics}
        batch, metrics = result
        if batch.partition_id == "val" and not submitted:
            raise _unseen()
        return {
            "batch": batch,
            "data": tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id),
            "metrics": metrics,
            "left": list(PromptQueue(batch.partition_id).prompts),
        }

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Put the recorded rows into TransferQueue under the live uids; return their keys."""
        response = recorded.response
        if call.point in (_COUNT, _WAIT) and (call.point == _COUNT) != isinstance(response, int):
            return self.poll(call)  # whether the trainer waits depends on the clock
        if call.point == _COUNT:
            return response
        if call.point == _WAIT:
            names = PromptQueue(TRAIN).names()
            return {names.get(uid, uid) for uid in response["uids"]}, response["metrics"]
        return self._restore_rows(call, response, shift), response["metrics"]

    def _restore_rows(self, call: Call, response: Mapping[str, Any], shift: int | None) -> Any:
        import transfer_queue as tq  # noqa: PLC0415
        from transfer_queue import KVBatchMeta  # noqa: PLC0415

        batch = response["batch"]
        queue = PromptQueue(batch.partition_id)
        withheld = queue.withheld
        if shift is None:
            rows = as_recorded(batch.keys, named(withheld))
            left = set(response["left"])
            answered = [uid for uid, old in withheld.items() if old not in left]
        else:
            answered = list(withheld)[: _argument(call, "batch_size", 3)]
            rows = fitted(batch.keys, answered)
        keys = [f"{row.new}{batch.keys[row.source][len(str(row.old)) :]}" for row in rows]
        tags = [restored_tag(batch.tags[row.source], row, shift) for row in rows]
        data = restored_data(response["data"], rows, shift)
        queue.clear({*answered, *(row.new.uid for row in rows)}, keep=keys)
        tq.kv_batch_put(keys=keys, partition_id=batch.partition_id, fields=data, tags=tags)
        return KVBatchMeta(
            keys=keys,
            tags=tags,
            partition_id=batch.partition_id,
            fields=batch.fields,
            extra_info=batch.extra_info,
        )

    def rows(self, request: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return each prompt's fields; its uid is new in every run."""
        return [row for submission in request for row in _rows_of(submission["prompts"])]

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the sampled rows: prompts are numbered in the order in which they were submitted."""
        uids = [uid for submission in recorded.request for uid in submission["uid"]]
        columns = dict(recorded.response["data"])
        outputs = [int(key.rsplit("_", 1)[1]) for key in recorded.response["batch"]["keys"]]
        return from_columns(columns, uids, outputs=outputs, aside=_ASIDE)

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the prompts that were sampled; one without trajectories is none of them."""
        rows: dict[str, list[int]] = {
            uid: [] for submission in recorded.request for uid in submission["uid"]
        }
        for row, key in enumerate(recorded.response["batch"]["fields"]["keys"]):
            rows.setdefault(Rollout.of(key).uid, []).append(row)
        return [Group(own, uid) for uid, own in rows.items() if own]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep the rows of these prompts, and what was submitted of those that are kept anywhere."""
        rows, picker = rows_of(groups), recorded.picker
        kept = {group.uid for group in groups} | {*elsewhere}
        asked = [uid for submission in recorded.request for uid in submission["uid"]]
        response = dict(recorded.response)
        response["batch"] = _batch_with(response["batch"], rows)
        response["data"] = picker.rows(response["data"], rows)
        response["left"] = [uid for uid in response["left"] if uid in kept]
        return Excerpt(
            request=[
                {
                    "uid": [uids[row] for row in own],
                    "prompts": picker.rows(submission["prompts"], own),
                }
                for submission in recorded.request
                for uids in [submission["uid"]]
                for own in [[row for row, uid in enumerate(uids) if uid in kept]]
                if own
            ],
            response=response,
            asked=[row for row, uid in enumerate(asked) if uid in kept],
        )

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return the names of the rows' fields."""
        return list(columns_of(recorded.response["data"]) or ())

    def without(self, recorded: Skeletons, names: Collection[str]) -> Any:
        """Return the response with fewer fields in its rows."""
        return {**recorded.response, "data": without(recorded.response["data"], names)}


def _batch_with(batch: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """Return the skeleton of a ``KVBatchMeta`` with these rows."""
    lists = {name: [batch["fields"][name][row] for row in rows] for name in ("keys", "tags")}
    sizes = {name: len(rows) for name in batch["extras"] if name == "_size"}
    return {
        **batch,
        "fields": {**batch["fields"], **lists},
        "extras": {**batch["extras"], **sizes},
    }


def _argument(call: Call, name: str, position: int) -> Any:
    """Return an argument by name or position: custom samplers may take ``*args, **kwargs``."""
    return call.kwargs[name] if name in call.kwargs else call.args[position]


def _submitted(call: Call) -> Any:
    return _argument(call, "prompts" if call.point == _VALIDATE else "batch", 1)


def _validation(prompts: Any) -> Place | None:
    """Return where prompts of a validation belong; None for what comes from the V0 trainers."""
    if hasattr(prompts, "meta_info") or "validate" not in prompts or not prompts["validate"]:
        return None
    return Place(prompts["global_steps"], "val")


def _columns(batch: Any) -> list[str]:
    """Return the names of the fields with a value for each row, unlike batch-wide ones."""
    from tensordict import NonTensorData  # noqa: PLC0415

    return [
        name
        for name in batch.keys()  # noqa: SIM118 - a TensorDict iterates over its rows
        if not isinstance(batch.get(name), NonTensorData)
    ]


def _paired(recorded: Sequence[Any], submitted: Sequence[Any]) -> dict[str, str]:
    """Return the recorded uid of each prompt of the last submit, empty where there is none."""
    old = [uid for submission in recorded for uid in submission["uid"]]
    before = sum(len(submission["uid"]) for submission in submitted[:-1])
    new = submitted[-1]["uid"]
    counterparts = [*old[before : before + len(new)], *[""] * len(new)]
    return dict(zip(new, counterparts, strict=False))


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


def _unseen() -> CassetteError:
    return CassetteError(
        "the validation's prompts were not seen, since the agent loop manager does not derive from "
        "verl's AgentLoopManager",
        fixes=["Let the manager's class derive from verl's AgentLoopManager."],
    )
