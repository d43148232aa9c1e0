"""The adapter for OpenRLHF: its ``SamplesGenerator``.

``generate_samples`` says no step, so its calls are counted. It draws its prompts itself, from an
iterator that it keeps: ``_dataloader_iter``, over ``prompts_dataloader``. A call looks ahead at the
prompts that are next, so that a replay can compare them, and a replay draws as many as the recorded
call drew, so that the data set goes on, and is saved and resumed, as in a live run. Samples beyond
one training batch wait in ``_sample_buffer``. ``generate_eval_samples`` goes through the whole of
``eval_dataloader``.

Source: openrlhf 0.11.2, ``openrlhf/trainer/ppo_utils/samples_generator.py``.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons, matched, rows_of
from rollout_cassettes.adapters.fitting import Groups
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "openrlhf"

_CLASS = "openrlhf.trainer.ppo_utils.samples_generator:SamplesGenerator"
_TRAIN = f"{_CLASS}.generate_samples"
_EVAL = f"{_CLASS}.generate_eval_samples"

_COLUMNS = ("prompt", "label", "image")
"""What a batch of the dataloader holds of each prompt, after the name of its data set."""


class OpenRLHF(Adapter):
    """Records and replays the samples that OpenRLHF's PPO trainers get from vLLM."""

    name = NAME
    step_kind = "call"
    distributions = (NAME, "vllm", "torch")
    phases = frozenset({TRAIN})
    entry_points = tuple(
        EntryPoint.to(NAME, target, framework=NAME, overrides=True) for target in (_TRAIN, _EVAL)
    )

    def place(self, call: Call) -> Place:
        """Return whether it is an evaluation; the calls are counted."""
        return Place(None, "val" if _evaluates(call) else TRAIN)

    def request(self, call: Call) -> dict[str, Any]:
        """Return the prompts that the call is going to draw first."""
        generator = call.args[0]
        default = generator.args.rollout.n_samples_per_prompt
        return {
            "rows": _rows(_ahead(generator, evaluates=_evaluates(call))),
            "n_samples_per_prompt": call.kwargs.get("n_samples_per_prompt", default),
        }

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Record what was returned, and what the generator keeps for later calls."""
        generator = call.args[0]
        if _evaluates(call):
            return {"output": result}
        return {
            "output": result,
            "left": list(generator._sample_buffer),
            "is_exhausted": generator._dataloader_iter is None,
        }

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what was returned, with the generator's iterator and buffer as after the call."""
        generator, response = call.args[0], recorded.response
        output = response["output"]
        if _evaluates(call):
            generator._eval_dataloader_iter = None
            return (
                output if shift is None else _fitted(output, recorded.request, submitted[0], None)
            )
        if shift is not None:
            return _repeated(generator, recorded, submitted[0])
        _, _, drawn, _ = output
        _draw(generator, drawn)
        if response["is_exhausted"]:
            _end(generator)
        generator._sample_buffer = response["left"]
        return output

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]]:
        """Return the prompts, each with its label and its images."""
        rows: list[dict[str, Any]] = request["rows"]
        return rows

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the samples: an experience each, of one row."""
        output = recorded.response["output"]
        samples = output if isinstance(output, list) else output[0]
        rows = [_columns(sample) for sample in samples]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        size = Groups.of(len(rows), recorded.request["n_samples_per_prompt"]).size
        return from_columns({**columns, "uid": [row // size for row in range(len(rows))]})

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the experiences of each prompt, in the order in which the prompts were drawn."""
        return [each.group for each in _prompts(recorded)]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep these prompts, as if the call had drawn no others; the pass rate stays."""
        asked = sorted(each.asked for each in _prompts(recorded) if each.group in groups)
        request, response = recorded.request, dict(recorded.response)
        output, samples = response["output"], _samples(response)
        kept = recorded.picker.rows(samples, rows_of(groups))
        response["output"] = kept
        if samples is not output:
            _, rate, _, is_exhausted = output["items"]
            response["output"] = {**output, "items": [kept, rate, len(asked), is_exhausted]}
        return Excerpt(
            {**request, "rows": [request["rows"][row] for row in asked]}, response, asked
        )

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return none: experiences are objects, which are kept whole."""
        return []


def _evaluates(call: Call) -> bool:
    return call.point.target == _EVAL


# ---- the generator's iterators and its buffer


def _ahead(generator: Any, *, evaluates: bool) -> list[Any]:
    """Return the batches that are drawn next, and put them back."""
    if evaluates:
        batches = list(_iterator(generator, "_eval_dataloader_iter", generator.eval_dataloader))
        generator._eval_dataloader_iter = iter(batches)
        return batches
    rollout = generator.args.rollout
    waiting = getattr(generator, "_sample_buffer", None)
    if not waiting:
        _iterator(generator, "_dataloader_iter", generator.prompts_dataloader)
        generator._sample_buffer = []
    iterator = generator._dataloader_iter
    if iterator is None or len(waiting or ()) >= rollout.batch_size * rollout.n_samples_per_prompt:
        return []
    batches = list(_taken(iterator, _generated_at_once(rollout)))
    generator._dataloader_iter = itertools.chain(batches, iterator)
    return batches


def _generated_at_once(rollout: Any) -> int:
    """Return how many prompts a call draws first: a training batch, more, or fewer."""
    size: int = getattr(rollout, "vllm_generate_batch_size", None) or rollout.batch_size
    return size


def _iterator(generator: Any, name: str, loader: Any) -> Iterator[Any]:
    """Return an iterator that a generator keeps; start it, where it has none."""
    if getattr(generator, name, None) is None:
        setattr(generator, name, iter(loader))
    iterator: Iterator[Any] = getattr(generator, name)
    return iterator


def _taken(iterator: Iterator[Any], prompts: int) -> Iterator[Any]:
    """Draw batches until there are so many prompts, or no more."""
    while prompts > 0:
        batch = next(iterator, None)
        if batch is None:
            return
        yield batch
        prompts -= len(batch[1])


def _draw(generator: Any, prompts: int) -> None:
    """Draw as many prompts as the recorded call drew, those that took filtered ones' places too.

    Raises:
        CassetteError: If there are fewer.
    """
    iterator = generator._dataloader_iter
    found = sum(len(batch[1]) for batch in _taken(iterator or iter(()), prompts))
    if found < prompts:
        raise _other_data(f"drew {prompts} prompts, and {found} are left")


def _end(generator: Any) -> None:
    """Come to the end of the prompts, as the recorded call did.

    Raises:
        CassetteError: If there are more.
    """
    iterator = generator._dataloader_iter
    if iterator is not None and next(iterator, None) is not None:
        raise _other_data("came to the end of the prompts, and there are more")
    generator._dataloader_iter = None


def _other_data(what: str) -> CassetteError:
    return CassetteError(
        f"The recorded call of generate_samples {what}.",
        fixes=["Run with the data set of the recorded run.", "Replay with mode='repeat'."],
    )


# ---- repeat mode


def _repeated(generator: Any, recorded: Exchange, live: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a recorded output for the prompts that are next, and draw those."""
    samples, pass_rate, _, _ = recorded.response["output"]
    rollout = generator.args.rollout
    most = min(_generated_at_once(rollout), rollout.batch_size)
    drawn = min(len(live["rows"]), most)
    _draw(generator, drawn)
    if drawn < most:
        _end(generator)
    generator._sample_buffer = []
    is_exhausted = generator._dataloader_iter is None
    return (
        _fitted(samples, recorded.request, live, most),
        pass_rate,
        drawn,
        is_exhausted,
    )


def _fitted(
    samples: list[Any], recorded: Mapping[str, Any], live: Mapping[str, Any], most: int | None
) -> list[Any]:
    """Return recorded samples for the live number of prompts, whole groups at a time.

    Args:
        samples: The recorded samples.
        recorded: What was asked for when they were recorded.
        live: What is asked for.
        most: How many prompts a training batch has; None for as many as there are.
    """
    prompts = len(live["rows"])
    if not samples:
        return samples
    size = live["n_samples_per_prompt"]
    wanted = (prompts if most is None else min(prompts, most)) * size
    was = Groups.of(len(samples), recorded["n_samples_per_prompt"])
    return [copy.deepcopy(samples[row]) for row in was.fitted(Groups(wanted, size))]


# ---- parts of a recording


class _Prompt(NamedTuple):
    """A prompt that was drawn, and what was made of it.

    Attributes:
        asked: Which of those that were asked for it is.
        group: Its experiences, among all that were returned.
    """

    asked: int
    group: Group


def _prompts(recorded: Skeletons) -> list[_Prompt]:
    """Return the prompts of a recorded call, as they were drawn.

    Raises:
        ValueError: If experiences wait for later calls, or are of prompts that the request lacks.
    """
    samples, picker = _samples(recorded.response), recorded.picker
    asked = recorded.request["rows"]
    if recorded.response.get("left") or (samples and not asked):
        raise ValueError(
            "a call generated more than a batch, and returned the rest later "
            "(vllm_generate_batch_size)"
        )
    size = Groups.of(len(samples), recorded.request["n_samples_per_prompt"]).size
    groups = [Group([*range(start, start + size)]) for start in range(0, len(samples), size or 1)]
    made = [picker.plain(samples[group.rows[0]]) for group in groups]
    drawn = [(row.get("prompt"), row.get("label")) for row in picker.plain(asked)]
    places = matched(map(_asked, made), drawn)
    prompts = []
    for place, group in zip(places, groups, strict=True):
        if place is None:
            raise ValueError("it has a prompt that was drawn in the place of a filtered one")
        prompts.append(_Prompt(place, group))
    return sorted(prompts)


def _samples(response: Mapping[str, Any]) -> list[Any]:
    """Return the skeletons of the experiences."""
    output = response["output"]
    samples: list[Any] = output if isinstance(output, list) else output["items"][0]
    return samples


def _asked(sample: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a prompt is recognized by."""
    return sample["prompts"][0], sample["labels"][0]


# ---- rows


def _rows(batches: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the prompts of the dataloader's batches."""
    return [
        dict(zip(_COLUMNS, row, strict=False))
        for _, *columns in batches
        for row in zip(*columns, strict=True)
    ]


def _columns(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return one experience as columns; log-probs and masks begin with the second token.

    Source: openrlhf 0.11.2, ``SamplesGenerator._process_response_into_experience``.
    """
    found: dict[str, Any] = {}
    tokens, mask = sample["sequences"][0], sample["action_mask"][0].astype(bool)
    actions = mask.nonzero()[0]
    start, end = (actions[0], actions[-1] + 1) if len(actions) else (len(mask), len(mask))
    found["prompt_ids"], found["response_ids"] = tokens[: start + 1], tokens[start + 1 : end + 1]
    found["mask"] = mask[start:end].astype("int64")
    log_probs = sample.get("rollout_log_probs")
    if log_probs is not None:
        found["log_probs"] = log_probs[0][start:end]
    found["prompt"] = next(iter(sample.get("prompts") or ()), None)
    found["label"] = next(iter(sample.get("labels") or ()), None)
    rewards = sample.get("rewards")
    if rewards is not None:
        found["score"] = float(rewards.reshape(-1)[0])
    return found
