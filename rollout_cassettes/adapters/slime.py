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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.cassette.key import TRAIN
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


def _sample_class() -> Any:
    """Return the class of samples of the framework that is running.

    Raises:
        CassetteError: If none is.
    """
    for name in FRAMEWORKS:
        module = sys.modules.get(f"{name}.utils.types")
        if module is not None:
            return module.Sample
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


def _columns(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample's fields by the names that trajectories know."""
    fields = {name: value for name, value in sample.items() if not _is_empty(value)}
    tokens, length = list(fields.pop("tokens", ())), fields.pop("response_length", 0)
    start = len(tokens) - length
    fields |= {"prompt_ids": tokens[:start], "response_ids": tokens[start:]}
    if "group_index" in fields:
        fields["uid"] = str(fields.pop("group_index"))
    fields["response"] = sample.get("response", "")
    return fields


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (list, dict, str)) and not value)
