"""The adapter for TRL's GRPO and RLOO trainers.

Both make their rollouts in the training process. ``_prepare_inputs`` calls
``_generate_and_score_completions`` with the rows of the data set, each prompt repeated
``num_generations`` times; that calls ``_generate`` with the prompts, and then computes rewards,
advantages and the log-probabilities of the reference model. Validation goes the same way, batch by
batch, with the model in evaluation mode.

Source: trl 1.16.0, ``trl/trainer/grpo_trainer.py`` and ``rloo_trainer.py``; 0.24.0 for the images.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import (
    Excerpt,
    Group,
    Skeletons,
    columns_of,
    rows_of,
    without,
)
from rollout_cassettes.adapters.fitting import Groups, picked, select
from rollout_cassettes.adapters.trl import buffers, run
from rollout_cassettes.adapters.trl.reading import trajectories
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint
from rollout_cassettes.trajectories import Trajectory

Scope = Literal["generated", "scored"]

_METHODS = {"generated": "_generate", "scored": "_generate_and_score_completions"}
_NAMES = {"generated": "trl", "scored": "trl_scored"}


class TrlTrainer(Adapter):
    """Records and replays the rollouts of TRL's ``GRPOTrainer`` and ``RLOOTrainer``.

    Args:
        scope: ``"generated"`` for what ``_generate`` returns: rewards are computed for real.
            ``"scored"`` for what ``_generate_and_score_completions`` returns, rewards and
            advantages included: reward functions are not called.

    Raises:
        ValueError: If the scope is neither.
    """

    step_kind = "global step"
    distributions = ("trl", "transformers", "accelerate", "torch")
    phases = frozenset({TRAIN})
    unobserved = "TRL shuffles and splits all columns of a batch"

    def __init__(self, scope: Scope = "generated") -> None:
        if scope not in get_args(Scope):
            raise ValueError(f"scope is 'generated' or 'scored'; got {scope!r}")
        self.scope = scope
        self.name = _NAMES[scope]
        self.by_default = scope == "generated"  # one holds the other
        rollouts = (
            EntryPoint.to(
                self.name, f"{trainer}.{_METHODS[scope]}", framework="trl", overrides=True
            )
            for trainer in run.TRAINERS
        )
        self.entry_points = (*rollouts, *run.entry_points(self.name))

    def place(self, call: Call) -> Place:
        """Return the trainer's step, counted from 0, and whether it evaluates."""
        trainer = call.args[0]
        return Place(trainer.state.global_step, TRAIN if trainer.model.training else "val")

    def request(self, call: Call) -> dict[str, Any]:
        """Return the rows to generate for, and where the trainer's buffers end."""
        trainer = call.args[0]
        generations = trainer.num_generations
        if not trainer.model.training:
            generations = getattr(trainer, "num_generations_eval", generations)
        return {
            "rows": self._rows(call),
            "num_generations": generations,
            "buffers": buffers.marks(trainer),
        }

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Record what was returned, and what was added to the trainer's buffers."""
        trainer, before = call.args[0], submitted[0]["buffers"]
        if self.scope == "generated":
            return {"output": result, "buffers": buffers.added(trainer, before, logs=False)}
        return {
            "output": result,
            "buffers": buffers.added(trainer, before, logs=True),
            "logged": buffers.logged(trainer, len(submitted[0]["rows"])),
            "reward_weights": trainer.reward_weights.tolist(),
        }

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what was returned, on the trainer's device, and fill its buffers."""
        trainer, output = call.args[0], recorded.response["output"]
        if shift is not None:
            output = _fitted(trainer, output, recorded.request, submitted[0])
        elif recorded.response.get("cut"):
            output = _recounted(trainer, output)
        buffers.put_back(trainer, recorded.response["buffers"])
        return _moved(output, trainer.accelerator.device)

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]]:
        """Return the rows: prompts, and all columns of the data set where rewards are recorded."""
        rows: list[dict[str, Any]] = request["rows"]
        return rows

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the completions; with their rewards where these are recorded."""
        return trajectories(recorded.request, recorded.response)

    def start(self, call: Call) -> Iterable[Place]:
        """Refuse a trainer whose rollouts can't be replayed."""
        run.check(call, rewards_are_live=self.scope == "generated")
        return ()

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the rows of each prompt: of this process, where it is spread over several."""
        request = recorded.request
        own = Groups.of(len(request["rows"]), request["num_generations"])
        return [
            Group([*range(start, start + own.size)]) for start in range(0, own.rows, own.size or 1)
        ]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep these rows; metrics stay what they were of all rows."""
        request, response, picker = recorded.request, recorded.response, recorded.picker
        rows, count = rows_of(groups), len(request["rows"])
        if "pixel_values" in (columns_of(response["output"]) or ()):
            raise ValueError("what was made of its images is not stored row by row")
        logs = response["buffers"]["logs"]
        kept = {
            **response,
            "output": picked(response["output"], rows, count, picker),
            "buffers": {**response["buffers"], "logs": picked(logs, rows, count, picker)},
            "cut": True,
        }
        if picker.length(logs.get("prompt")) != count:  # it has rows of others, and stays whole
            kept["logged"] = None
        return Excerpt({**request, "rows": [request["rows"][row] for row in rows]}, kept, rows)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return the names of the scored output's columns; what is generated is a tuple."""
        return list(columns_of(recorded.response["output"]) or ())

    def without(self, recorded: Skeletons, names: Collection[str]) -> Any:
        """Return the response with fewer columns in its output."""
        return {**recorded.response, "output": without(recorded.response["output"], names)}

    def _rows(self, call: Call) -> list[dict[str, Any]]:
        _, given, *others = (*call.args, *call.kwargs.values())
        if self.scope == "scored":
            return [dict(row) for row in given]
        columns = {"prompt": given}
        if others and isinstance(others[0], list):  # until trl 0.24; later they are in the prompts
            columns["images"] = others[0]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _fitted(trainer: Any, output: Any, recorded: Any, live: Any) -> Any:
    """Return the recorded output for the live number of rows.

    Raises:
        CassetteError: If it holds images, which are not stored row by row.
    """
    was, now = (Groups.of(len(each["rows"]), each["num_generations"]) for each in (recorded, live))
    rows = was.fitted(now)
    if rows == list(range(was.rows)):
        return output
    if isinstance(output, dict) and "pixel_values" in output:
        raise CassetteError(
            f"{was.rows} rows with images were recorded, and {now.rows} are asked for: what was "
            "made of the images can't be fitted.",
            fixes=["Replay with the recorded batch size.", "Record with scope='generated'."],
        )
    return _recounted(trainer, select(output, rows, was.rows))


def _recounted(trainer: Any, output: Any) -> Any:
    """Return an output with other rows than were recorded, with the number of their tokens."""
    if isinstance(output, dict) and "num_items_in_batch" in output:
        mask = output["completion_mask"] * output.get("tool_mask", 1)
        output["num_items_in_batch"] = trainer.accelerator.gather(mask.sum()).sum()
    return output


def _moved(value: Any, device: Any) -> Any:
    """Return an output with its tensors on a device; lists of token ids are left as they are."""
    import torch  # noqa: PLC0415 - this module is imported where torch may not be

    if isinstance(value, tuple):
        return tuple(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return {name: _moved(each, device) for name, each in value.items()}
    return value.to(device) if isinstance(value, torch.Tensor) else value
