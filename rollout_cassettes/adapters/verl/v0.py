"""The adapter for verl's V0 trainers: one call hands prompts out and gets trajectories back.

``RayPPOTrainer`` and the trainers made from it (one-step-off, separation) call
``AgentLoopManager.generate_sequences`` with a ``DataProto``, each prompt repeated ``n`` times, and
``union`` what it returns with the batch that they kept.

Where rewards are computed after generation, the manager hands columns of the request back in its
output (``uid`` among them). Those echoes are not recorded: a replay takes them from the live
request, or else ``union`` would find two values for one column.

Source: verl 0.9.1, ``verl/experimental/agent_loop/agent_loop.py``, ``verl/trainer/ppo/ray_trainer.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from rollout_cassettes.adapters.adapter import Exchange, Place
from rollout_cassettes.adapters.excerpt import (
    Excerpt,
    Group,
    Skeletons,
    columns_of,
    grouped,
    rows_of,
    without,
)
from rollout_cassettes.adapters.verl import run
from rollout_cassettes.adapters.verl.adapter import VerlAdapter
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.cassette.tree.picking import Picker
from rollout_cassettes.patching import Call, EntryPoint
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "verl_v0"

FIT = "verl.trainer.ppo.ray_trainer:RayPPOTrainer.fit"

_PER_RUN = ("uid", "priority")
"""Columns of a request that differ between equal runs, or that the manager adds itself."""

_STEP_COLUMNS = ("min_global_steps", "max_global_steps")

_ASIDE = ("input_ids", "attention_mask", "position_ids", "dummy_tensor", "prompt", "priority")
"""Columns that repeat others."""


class VerlV0(VerlAdapter):
    """Records and replays the training rollouts of verl's V0 trainers."""

    name = NAME
    step_kind = "trainer step"
    distributions = ("verl", "tensordict", "torch")
    skip_section = "rollout"
    entry_points = (
        EntryPoint.to(
            NAME,
            "verl.experimental.agent_loop.agent_loop:AgentLoopManager.generate_sequences",
            framework="verl",
            overrides=True,
        ),
        *run.entry_points(NAME, FIT),
    )

    def place(self, call: Call) -> Place | None:
        """Return the trainer's step, and whether it validates; None for what comes from V1."""
        prompts = _prompts(call)
        meta = getattr(prompts, "meta_info", None)
        if meta is None:
            return None
        if meta.get("validate", False):
            return Place(meta["global_steps"], "val")
        return Place(self._step(prompts))

    def request(self, call: Call) -> Any:
        """Return the prompts, as the DataProto that they are."""
        return _shallow(_prompts(call))

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Record the output without its echoes, and what the call added to the prompts."""
        asked, output = submitted[0], _shallow(result)
        echoed = [
            name
            for name, column in output.non_tensor_batch.items()
            if name in asked.non_tensor_batch
            and digest(column) == digest(asked.non_tensor_batch[name])
        ]
        columns = output.non_tensor_batch
        output.non_tensor_batch = {n: c for n, c in columns.items() if n not in echoed}
        after = _prompts(call).non_tensor_batch
        added = {n: c for n, c in after.items() if n not in asked.non_tensor_batch}
        return {"output": output, "echoed": echoed, "order": list(columns), "added": added}

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return the recorded output, fitted to the live prompts, with their own columns echoed."""
        prompts, response = _prompts(call), recorded.response
        output, added = response["output"], response["added"]
        if shift is not None:
            rows = _fitted(recorded.request, prompts)
            output, added = output.select_idxs(rows), {n: c[rows] for n, c in added.items()}
            _move_steps(output, shift)
        prompts.non_tensor_batch.update(added)
        columns = output.non_tensor_batch | {
            n: prompts.non_tensor_batch[n] for n in response["echoed"]
        }
        output.non_tensor_batch = {name: columns[name] for name in response["order"]}
        return output

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]]:
        """Return each prompt's fields; its uid is new in every run."""
        columns = {n: c for n, c in request.non_tensor_batch.items() if n not in _PER_RUN}
        if request.batch is not None:
            columns |= dict(request.batch.items())
        return [
            {name: columns[name][row] for name in sorted(columns)} for row in range(len(request))
        ]

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the output's rows without their padding, with the columns of the request."""
        asked = recorded.request["non_tensor_batch"]
        output = recorded.response["output"]
        columns = {**asked, **output["non_tensor_batch"], **_unpadded(output["batch"])}
        return from_columns(columns, [str(uid) for uid in asked.get("uid", ())], aside=_ASIDE)

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the rows of each uid; each row is its own prompt where there are none."""
        request, picker = recorded.request["fields"], recorded.picker
        columns = {**(columns_of(request["batch"]) or {}), **request["non_tensor_batch"]}
        count = next((picker.length(column) for column in columns.values()), None) or 0
        uids = columns.get("uid")
        names = range(count) if uids is None else picker.plain(uids).tolist()
        return [Group(rows) for rows in grouped(names)]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep the rows of these prompts, in the request and in the output alike."""
        rows, picker, response = rows_of(groups), recorded.picker, recorded.response
        kept = {
            **response,
            "output": _proto_with(response["output"], rows, picker),
            "added": {name: picker.rows(c, rows) for name, c in response["added"].items()},
        }
        return Excerpt(_proto_with(recorded.request, rows, picker), kept, rows)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return the names of the output's columns, but for those that are echoed."""
        output = recorded.response["output"]["fields"]
        return [*(columns_of(output["batch"]) or ()), *output["non_tensor_batch"]]

    def without(self, recorded: Skeletons, names: Collection[str]) -> Any:
        """Return the response with fewer columns in its output."""
        response = recorded.response
        output = dict(response["output"]["fields"])
        for part in ("batch", "non_tensor_batch"):
            output[part] = output[part] and without(output[part], names)
        stored = set(self.fields(recorded)) & {*names}
        return {
            **response,
            "output": {**response["output"], "fields": output},
            "order": [name for name in response["order"] if name not in stored],
        }

    def _step(self, prompts: Any) -> int:
        step: int = prompts.meta_info["global_steps"]
        return step


def _unpadded(batch: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of an output, each row as long as it is: prompts are padded on the left.

    Args:
        batch: Arrays of shape ``[batch, length]``.
    """
    attended = batch["attention_mask"].astype(bool)
    prompt_length = batch["prompts"].shape[1]
    asked, answered = attended[:, :prompt_length], attended[:, prompt_length:]
    columns = {"prompts": [ids[kept] for ids, kept in zip(batch["prompts"], asked, strict=True)]}
    for name, column in batch.items():
        if name not in (*_ASIDE, "prompts") and column.shape[:2] == answered.shape:
            columns[name] = [row[kept] for row, kept in zip(column, answered, strict=True)]
    return columns


def _prompts(call: Call) -> Any:
    return call.kwargs["prompts"] if "prompts" in call.kwargs else call.args[1]


def _shallow(batch: Any) -> Any:
    """Return a DataProto with containers of its own, since callers and callees change theirs."""
    return type(batch)(
        batch=batch.batch,
        non_tensor_batch=dict(batch.non_tensor_batch),
        meta_info=dict(batch.meta_info),
    )


def _fitted(recorded: Any, live: Any) -> list[int]:
    """Return the recorded row for each live row: groups in order, gone through again if need be."""
    groups = cycle(_groups(recorded))
    return [
        row
        for live_group, group in zip(_groups(live), groups, strict=False)
        for row in islice(cycle(group), len(live_group))
    ]


def _proto_with(proto: Mapping[str, Any], rows: Sequence[int], picker: Picker) -> dict[str, Any]:
    """Return the skeleton of a DataProto with these rows."""
    fields = dict(proto["fields"])
    if fields["batch"] is not None:
        fields["batch"] = picker.rows(fields["batch"], rows)
    columns = fields["non_tensor_batch"]
    fields["non_tensor_batch"] = {name: picker.rows(c, rows) for name, c in columns.items()}
    return {**proto, "fields": fields}


def _groups(batch: Any) -> list[list[int]]:
    """Return the rows of each prompt, in order; each row is its own where there are no uids."""
    return grouped(batch.non_tensor_batch.get("uid", range(len(batch))))


def _move_steps(output: Any, shift: int) -> None:
    """Move the weight versions that trajectories began and ended with, so that staleness stays."""
    for name in _STEP_COLUMNS:
        column = output.non_tensor_batch.get(name)
        if column is not None:
            column[:] = [value + shift if isinstance(value, int) else value for value in column]
