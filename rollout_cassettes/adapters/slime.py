"""The adapter for slime, and for miles, which was made from it: a rollout function around yours.

slime's ``RolloutManager`` is a Ray actor. It calls the function that ``--rollout-function-path``
names with the step (``rollout_id``), the source of its prompts, and whether it evaluates. The
function draws prompts from the source (``get_samples``), as often as it likes, and may put samples
back that it did not finish (``add_samples``). ``generate_rollout`` is such a function. It calls
yours, or hands back what yours returned, and opens the session by itself, in the actor's process:
see :mod:`rollout_cassettes.slime_rollout`. It makes a :class:`Rollout` of each call of slime's, with
a :class:`Source` around slime's own; these are what the adapter intercepts.

What is drawn and put back are submits, and the rollout is the sample that answers them. A replay
draws and puts back the same, so that the source goes on, and is saved and resumed, as in a live run.

Source: slime 0.3.0, ``slime/ray/rollout.py``, ``slime/rollout/``, ``slime/utils/types.py``;
miles-rl 0.0.2.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons, matched, rows_of
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cassette.tree.picking import Picker
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "slime"

FRAMEWORKS = ("slime", "miles")

_COMPARED = ("prompt", "label", "metadata", "multimodal_inputs", "response")
"""The fields of a drawn sample that a replay compares; a response has what was put back."""

_NUMBERS = ("index", "group_index", "rollout_id")
"""The fields of a sample that tell it from others of its batch."""


def __getattr__(name: str) -> Any:
    """Import the rollout function where slime asks for it: it opens sessions, and is no adapter's."""
    if name != "generate_rollout":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("rollout_cassettes.slime_rollout").generate_rollout


class Source:
    """Stands for a source of prompts, and lets sessions see what is drawn and put back.

    Args:
        source: The source of prompts.
        place: Where the rollout belongs that is under way.
    """

    def __init__(self, source: Any, place: Place) -> None:
        self._source = source
        self.place = place

    def get_samples(self, num_samples: int) -> Any:
        """Draw groups of samples."""
        return self.draw(num_samples, self._source.get_samples(num_samples))

    def add_samples(self, samples: Any) -> Any:
        """Put groups of samples back, to be drawn again."""
        return self.put_back(samples)

    def skip(self, count: int) -> None:
        """Draw groups that nobody gets."""
        self._source.get_samples(count)

    def draw(self, count: int, groups: Any) -> Any:
        """Hand out groups that were drawn."""
        return groups

    def put_back(self, groups: Any) -> Any:
        """Put groups back."""
        return self._source.add_samples(groups)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __len__(self) -> int:
        return len(self._source)


class Rollout:
    """One call of the rollout function, as sessions see it.

    Args:
        args: slime's arguments.
        source: The source of prompts.
        load: Imports the function. A replay does not: it needs no engine to import.
    """

    def __init__(self, args: Any, source: Source, load: Callable[[], Any]) -> None:
        self.args = args
        self.source = source
        self._load = load

    @property
    def batch_size(self) -> int:
        """How many groups slime asks for."""
        size: int = self.args.rollout_batch_size
        return size

    def generate(self) -> Any:
        """Call the function."""
        step, phase, _ = self.source.place
        return self._load()(self.args, step, self.source, evaluation=phase != TRAIN)


_DRAW = EntryPoint(NAME, __name__, "Source.draw", role=Role.SUBMIT)
_PUT_BACK = EntryPoint(NAME, __name__, "Source.put_back", role=Role.SUBMIT)
_GENERATE = EntryPoint(NAME, __name__, "Rollout.generate", role=Role.SAMPLE)


class Slime(Adapter):
    """Records and replays what rollout functions of slime's and of miles' return."""

    name = NAME
    step_kind = "rollout id"
    distributions = ("slime", "miles-rl", "sglang", "torch")
    phases = frozenset({TRAIN})
    entry_points = (_DRAW, _PUT_BACK, _GENERATE)

    def place(self, call: Call) -> Place:
        """Return the rollout's number, and whether it evaluates."""
        found = call.args[0]
        place: Place = found.source.place if isinstance(found, Rollout) else found.place
        return place

    def request(self, call: Call) -> dict[str, Any]:
        """Return what was drawn, as far as it is compared, or what was put back, as it is."""
        if call.point.role is not Role.SUBMIT:
            return {}
        groups = call.arguments["groups"]
        if call.point.target == _PUT_BACK.target:
            return {"put_back": groups}
        rows = [_compared(sample) for sample in _samples(groups)]
        return {"drawn": call.arguments["count"], "rows": rows}

    def withhold(self, call: Call, recorded: Sequence[Any], submitted: Sequence[Any]) -> Any:
        """Let the source go on as in a live run; there is nothing else to hold back."""
        return call.original(*call.args, **call.kwargs)

    def refill(self, call: Call, recorded: Sequence[Any]) -> None:
        """Draw and put back what the recorded function did."""
        source = call.args[0].source
        for each in recorded:
            if "drawn" in each:
                source.get_samples(each["drawn"])
            else:
                source.add_samples(each["put_back"])

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Record what the function returned."""
        return {"output": result, "batch_size": call.args[0].batch_size}

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what the function returned."""
        rollout, response = call.args[0], recorded.response
        if "dumped" in response:
            make = _sample_class().from_dict
            groups = itertools.groupby(response["dumped"], lambda each: each.get("group_index"))
            response = {
                **response,
                "output": [[make(each) for each in group] for _, group in groups],
            }
        if shift is None or rollout.source.place.phase != TRAIN:
            return response["output"]
        rollout.source.skip(rollout.batch_size)
        return _fitted(response["output"], response["batch_size"], rollout.batch_size)

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]]:
        """Return the samples that were drawn."""
        return [row for each in request for row in each.get("rows", ())]

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return the samples, of evaluations too."""
        response = recorded.response
        samples = [*_samples(response.get("dumped") or response["output"])]
        rows = [_columns(sample) for sample in samples]
        names = dict.fromkeys(name for row in rows for name in row)
        return from_columns({name: [row.get(name) for row in rows] for name in names})

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the groups of samples, in the order in which they were drawn.

        An evaluation has none: it stays as it is.
        """
        return [each.group for each in _prompts(recorded)]

    def excerpt(
        self, recorded: Skeletons, groups: Sequence[Group], elsewhere: Collection[str]
    ) -> Excerpt:
        """Keep these groups, and of what was drawn those that became them."""
        kept = [each for each in _prompts(recorded) if each.group in groups]
        request, asked = _drawn_alone(recorded.request, {each.drawn for each in kept})
        response, picker = dict(recorded.response), recorded.picker
        places = sorted(each.returned for each in kept)
        count = len(_returned(response, picker))
        if "dumped" in response:
            response["dumped"] = picker.rows(response["dumped"], rows_of(groups))
        else:
            response["output"] = _with_groups(response["output"], places, picker)
        response["batch_size"] = max(1, round(response["batch_size"] * len(kept) / count))
        return Excerpt(request, response, asked)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return none: samples are objects, which are kept whole."""
        return []


# ---- samples


def _samples(value: Any) -> Iterator[Any]:
    """Go through samples in whatever they are nested in: groups, outputs, data sets."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _samples(each)
        return
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    if "response_length" in fields or "prompt" in fields:
        yield value
    elif "samples" in fields:
        yield from _samples(fields["samples"])
    else:
        found = fields.get("data", fields)
        yield from _samples(list(found.values()) if isinstance(found, Mapping) else ())


def _compared(sample: Any) -> dict[str, Any]:
    fields = sample if isinstance(sample, Mapping) else vars(sample)
    return {name: fields[name] for name in _COMPARED if name in fields}


def running_framework() -> str | None:
    """Return the framework whose samples this process has imported; None if it has neither's."""
    return next((name for name in FRAMEWORKS if f"{name}.utils.types" in sys.modules), None)


def _sample_class() -> Any:
    """Return the class of samples of the framework that is running.

    Raises:
        CassetteError: If none is.
    """
    name = running_framework()
    if name is not None:
        return sys.modules[f"{name}.utils.types"].Sample
    raise CassetteError(
        "The recording was imported from a dump of slime's, and neither slime nor miles is running, "
        "whose samples it could be made into.",
        fixes=["Run `import slime.utils.types` first, or miles' own."],
    )


def _fitted(output: Any, recorded: int, live: int) -> Any:
    """Return an output with the live number of groups; those of later laps are numbered on."""
    groups = getattr(output, "samples", output)
    if live == recorded or not isinstance(groups, list) or not groups:
        return output
    count = len(groups)
    wanted = max(1, round(count * live / recorded))
    laps = [(groups[at % count], at // count) for at in range(wanted)]
    fitted = [_of_lap(group, lap, groups) if lap else group for group, lap in laps]
    return fitted if groups is output else replace(output, samples=fitted)


def _of_lap(group: Any, lap: int, groups: Any) -> Any:
    """Return a copy of a group, with numbers that no other one has."""
    copied = copy.deepcopy(group)
    for name in _NUMBERS:
        numbers = [getattr(sample, name, None) for sample in _samples(groups)]
        known = [number for number in numbers if isinstance(number, int)]
        step = max(known) - min(known) + 1 if known else 0
        for sample in _samples(copied):
            if isinstance(getattr(sample, name, None), int):
                setattr(sample, name, getattr(sample, name) + lap * step)
    return copied


# ---- parts of a recording


class _Prompt(NamedTuple):
    """A group of samples, as it was drawn and as it was returned.

    Attributes:
        drawn: Which of the groups that were drawn it is.
        returned: Which of those that were returned.
        group: Its samples, among all that were returned.
    """

    drawn: int
    returned: int
    group: Group


def _prompts(recorded: Skeletons) -> list[_Prompt]:
    """Return the groups of a recorded rollout, as they were drawn.

    Raises:
        ValueError: If it can't be told which of the drawn groups a returned one was.
    """
    returned = _returned(recorded.response, recorded.picker)
    drawn = _drawn(recorded.picker.plain(recorded.request))
    places: list[int | None] = [*range(len(returned))]
    if drawn:
        places = matched(map(_asked, returned), map(_asked, drawn))
    prompts, rows = [], itertools.count()
    for at, (samples, place) in enumerate(zip(returned, places, strict=True)):
        if place is None:
            raise ValueError(f"its rollout function did not draw the prompt of group {at}")
        prompts.append(_Prompt(place, at, Group([next(rows) for _ in samples])))
    return sorted(prompts)


def _returned(response: Mapping[str, Any], picker: Picker) -> list[list[Any]]:
    """Return the samples of each group of an output; none where it is that of an evaluation."""
    if "dumped" in response:
        samples = picker.plain(response["dumped"])
        return [[*group] for _, group in itertools.groupby(samples, _group_index)]
    output = response["output"]
    groups = output if isinstance(output, list) else output.get("fields", {}).get("samples", [])
    return [[*_samples(picker.plain(group))] for group in groups]


def _group_index(sample: Mapping[str, Any]) -> Any:
    return sample.get("group_index")


def _with_groups(output: Any, places: Sequence[int], picker: Picker) -> Any:
    """Return the skeleton of an output with these groups alone."""
    if isinstance(output, list):
        return picker.rows(output, places)
    fields = output["fields"]
    return {**output, "fields": {**fields, "samples": picker.rows(fields["samples"], places)}}


def _drawn(request: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the samples of each group that was drawn, as far as they are compared.

    Raises:
        ValueError: If their rollouts are spread over several steps.
    """
    if any(each.get("put_back") for each in request):
        raise ValueError("its rollout function put samples back that a later step goes on with")
    groups = []
    for each in request:
        rows, count = each.get("rows", []), each.get("drawn", 0)
        size, more = divmod(len(rows), count or 1)
        if more:
            raise ValueError(f"its rollout function drew {count} groups, with {len(rows)} samples")
        groups += [rows[at * size : (at + 1) * size] for at in range(count) if size]
    if any(sample.get("response") for group in groups for sample in group):
        raise ValueError("its rollout function went on with samples of an earlier step")
    return groups


def _drawn_alone(
    request: Sequence[Mapping[str, Any]], kept: Collection[int]
) -> tuple[list[Any], list[int]]:
    """Return the skeleton of a request that draws these groups alone, and their rows."""
    cut, asked = list[Any](), list[int]()
    groups, rows = itertools.count(), 0
    for each in request:
        count, own = each.get("drawn", 0), each.get("rows", [])
        size = len(own) // (count or 1)
        chosen = [at for at in range(count) if next(groups) in kept]
        places = [at * size + nth for at in chosen for nth in range(size)]
        if chosen:
            cut.append({"drawn": len(chosen), "rows": [own[place] for place in places]})
        elif "drawn" not in each:
            cut.append(each)
        asked += [rows + place for place in places]
        rows += len(own)
    return cut, asked


def _asked(samples: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Return what a group is recognized by."""
    first = samples[0] if samples else {}
    return first.get("prompt"), first.get("label")


# ---- rows


def _columns(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample's fields by the names that trajectories know."""
    fields = {name: value for name, value in sample.items() if not _is_empty(value)}
    tokens, length = list(fields.pop("tokens", ())), fields.pop("response_length", 0)
    start = len(tokens) - length
    fields |= {"prompt_ids": tokens[:start], "response_ids": tokens[start:]}
    if "group_index" in fields:
        fields["uid"] = str(fields.pop("group_index"))
    fields["response"] = sample.get("response", "")
    reward = sample.get("reward")
    if isinstance(reward, Mapping) and "score" in reward:  # as of slime's own for DAPO
        fields["score"] = reward["score"]
    return fields


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (list, dict, str)) and not value)
