"""The adapter for SkyRL: whatever implements its ``GeneratorInterface``.

The trainer awaits ``generate(input_batch)`` of its generator, with each prompt repeated
``n_samples_per_prompt`` times, and with the step and the phase in ``batch_metadata``. The fully
asynchronous trainer calls it for each prompt by itself, many at a time. What comes back is a dict
of columns; trained step by step, a trajectory has several rows in it.

Source: skyrl 0.4.0, ``skyrl/train/generators/``, ``skyrl/train/trainer.py``,
``skyrl/train/fully_async_trainer.py``; skyrl-train 0.3.1 for the older name of the package.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons, grouped, rows_of
from rollout_cassettes.adapters.fitting import Groups
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cassette.tree.codec import KIND
from rollout_cassettes.cassette.tree.picking import Picker
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "skyrl"

_MODULES = {
    "skyrl": "skyrl.train.generators.base",
    "skyrl-train": "skyrl_train.generators.base",
}
"""Where each package has the interface."""

_COMPARED = {"prompts": "prompt", "env_classes": "env_class", "env_extras": "env_extras"}
"""What a replay compares of a request, and what one row's is called."""

_IDS = "trajectory_ids"

_COLUMNS = {
    "prompt_token_ids": "prompt_ids",
    "loss_masks": "loss_mask",
    "rollout_logprobs": "log_probs",
}
"""What trajectories call columns of an output, where SkyRL calls them something else."""


class SkyRL(Adapter):
    """Records and replays what SkyRL's generators return."""

    name = NAME
    step_kind = "global step"
    distributions = ("skyrl", "skyrl-train", "torch")
    phases = frozenset({TRAIN})
    entry_points = tuple(
        EntryPoint.to(
            NAME, f"{module}:GeneratorInterface.generate", framework=package, overrides=True
        )
        for package, module in _MODULES.items()
    )

    def place(self, call: Call) -> Place:
        """Return the step and the phase that the batch is for, as far as it says them."""
        metadata = _batch(call).get("batch_metadata")
        if metadata is None:
            return Place(None)
        phase = TRAIN if metadata.training_phase == "train" else "val"
        return Place(metadata.global_step, phase)

    def request(self, call: Call) -> dict[str, Any]:
        """Return what the batch asks for, with trajectory ids as pairs."""
        batch = _batch(call)
        asked = {name: batch.get(name) for name in (*_COMPARED, "sampling_params")}
        ids = batch.get(_IDS)
        return {**asked, _IDS: None if ids is None else [_pair(each) for each in ids]}

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> Any:
        """Record the output as it is."""
        return result

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return the output, with the trajectory ids of the live request."""
        ids = _batch(call).get(_IDS)
        asked = _Asked.of(recorded.request)
        chosen: Sequence[int] = range(asked.rows)
        if shift is not None:
            chosen = asked.groups.fitted(_Asked.of(submitted[0]).groups)
        if shift is None and (ids is None or recorded.response.get(_IDS) is None):
            return recorded.response
        return _fitted(recorded.response, asked, chosen, ids)

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]]:
        """Return the prompts, each with its environment; which row is which is not compared."""
        columns = {name: request[column] for column, name in _COMPARED.items() if request[column]}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the output's rows; several of one trajectory are its outputs."""
        asked, output = _Asked.of(recorded.request), recorded.response
        count = len(output["response_ids"])
        columns = {
            _COLUMNS.get(name, name): column
            for name, column in output.items()
            if isinstance(column, list) and len(column) == count and name != _IDS
        }
        outputs: list[int] | None = None
        ids = _output_ids(output) or (asked.ids if count == asked.rows else None)
        if count == asked.rows:
            columns["prompt"] = recorded.request["prompts"]
        if ids is not None:
            columns |= {"uid": [uid for uid, _ in ids], "session": [nth for _, nth in ids]}
            outputs = list(_occurrences(ids))
        rows = from_columns(columns, [uid for uid, _ in asked.ids or ()], outputs=outputs)
        if ids is None or asked.ids is None:
            return rows
        prompts = dict(zip(asked.ids, recorded.request["prompts"], strict=True))
        return [  # later turns have more in their prompts
            replace(row, prompt=None if row.output_index else prompts.get(each))
            for row, each in zip(rows, ids, strict=True)
        ]

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the rows of the output by the instance that they are of, else by their prompt."""
        return [group for _, group in _prompts(recorded)]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep these rows, in the request and in the output alike; metrics stay."""
        request, picker = recorded.request, recorded.picker
        asked = sorted(row for rows, group in _prompts(recorded) if group in groups for row in rows)
        cut = {
            name: picker.rows(column, asked) if isinstance(column, list) else column
            for name, column in request.items()
        }
        rows = {
            len(request["prompts"]): asked,
            len(recorded.response["response_ids"]): rows_of(groups),
        }
        return Excerpt(cut, _cut(recorded.response, rows, picker), asked)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return the names of the output's columns, but for those that tell its rows."""
        return [name for name in recorded.response if name not in ("response_ids", _IDS)]


class _Asked(NamedTuple):
    """The rows of a request.

    Attributes:
        rows: How many there are.
        ids: The trajectory's id of each, as a pair; None where they have none.
    """

    rows: int
    ids: list[tuple[Any, int]] | None

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> _Asked:
        """Return the rows of a request as it is recorded."""
        ids = request[_IDS]
        return cls(len(request["prompts"]), None if ids is None else [tuple(each) for each in ids])

    @property
    def groups(self) -> Groups:
        """The rows by prompt: those of one instance follow each other."""
        prompts = len({instance for instance, _ in self.ids or ()}) or self.rows
        return Groups.of(self.rows, max(1, self.rows // max(1, prompts)))


def _occurrences(ids: Sequence[Any]) -> Iterator[int]:
    """Give for each of these how often it came before."""
    seen: Counter[Any] = Counter()
    for each in ids:
        yield seen[each]
        seen[each] += 1


def _batch(call: Call) -> Mapping[str, Any]:
    batch: Mapping[str, Any] = call.arguments["input_batch"]
    return batch


def _pair(identity: Any) -> list[Any]:
    """Return a trajectory's id as plain values; read with ``numpy=True``, it is a dict."""
    if isinstance(identity, Mapping):
        return [identity["instance_id"], identity["repetition_id"]]
    return [identity.instance_id, identity.repetition_id]


def _output_ids(output: Mapping[str, Any]) -> list[tuple[Any, int]] | None:
    ids = output.get(_IDS)
    return None if ids is None else [(each[0], each[1]) for each in map(_pair, ids)]


def _fitted(
    output: dict[str, Any], asked: _Asked, chosen: Sequence[int], live: Sequence[Any] | None
) -> dict[str, Any]:
    """Return a recorded output for a live request.

    Args:
        output: The columns.
        asked: The rows that were asked for in the recorded run.
        chosen: The recorded row for each live row.
        live: The trajectory id of each live row; None where they have none.
    """
    owners = _owners(output, asked)
    if list(chosen) != list(range(asked.rows)):
        places = [owners.get(row, []) for row in chosen]
        picked = [place for found in places for place in found]
        rows = {asked.rows: chosen, len(output["response_ids"]): picked}
        output = _picked(output, rows)
        owners = dict(enumerate(_counted(places)))
    if live is not None and output.get(_IDS) is not None:
        for row, found in owners.items():
            for place in found:
                output[_IDS][place] = live[row]
    return output


def _owners(output: Mapping[str, Any], asked: _Asked) -> dict[int, list[int]]:
    """Return where an output has the rows of each row that was asked for.

    Raises:
        CassetteError: If it has another number of rows, and they don't say whose they are.
    """
    ids, count = _output_ids(output), len(output["response_ids"])
    if ids is None or asked.ids is None:
        if count != asked.rows:
            raise CassetteError(
                f"The generator returned {count} rows for {asked.rows}, without trajectory_ids "
                "that say which belongs to which.",
                fixes=["Let the generator return trajectory_ids.", "Replay with mode='cache'."],
            )
        return {row: [row] for row in range(count)}
    rows = {each: row for row, each in enumerate(asked.ids)}
    owners: dict[int, list[int]] = {}
    for place, each in enumerate(ids):
        if each in rows:
            owners.setdefault(rows[each], []).append(place)
    return owners


def _counted(places: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Number places anew, one after the other."""
    numbers = itertools.count()
    for found in places:
        yield [next(numbers) for _ in found]


def _picked(column: Any, rows: Mapping[int, Sequence[int]]) -> Any:
    """Return these rows of a column, or of columns by name; anything else as it is.

    Args:
        column: The column.
        rows: The rows to return, by how many there were.
    """
    if isinstance(column, dict):
        return {name: _picked(each, rows) for name, each in column.items()}
    if isinstance(column, list) and len(column) in rows:
        return [copy.deepcopy(column[row]) for row in rows[len(column)]]
    return column


# ---- parts of a recording


def _prompts(recorded: Skeletons) -> list[tuple[list[int], Group]]:
    """Return for each prompt its rows in the request, and those in the output.

    Raises:
        ValueError: If the output has another number of rows, and they don't say whose they are.
    """
    plain, request, output = recorded.picker.plain, recorded.request, recorded.response
    asked = _Asked.of({name: plain(request[name]) for name in ("prompts", _IDS)})
    try:
        owners = _owners({name: plain(output.get(name)) for name in ("response_ids", _IDS)}, asked)
    except CassetteError as error:
        raise ValueError(error.what.rstrip(".")) from error
    names: Sequence[Any] = recorded.marks or ()
    if asked.ids is not None:
        names = [uid for uid, _ in asked.ids]
    prompts = [
        (rows, Group(sorted(place for row in rows for place in owners.get(row, []))))
        for rows in grouped(names)
    ]
    return [each for each in prompts if each[1].rows]


def _cut(node: Any, rows: Mapping[int, Sequence[int]], picker: Picker) -> Any:
    """Do the same as :func:`_picked` to a skeleton."""
    if isinstance(node, dict) and KIND not in node:
        return {name: _cut(each, rows, picker) for name, each in node.items()}
    chosen = rows.get(picker.length(node) or 0)
    return node if chosen is None else picker.rows(node, chosen)
