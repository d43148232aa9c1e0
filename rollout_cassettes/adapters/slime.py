"""The adapter for slime, and for miles, which was made from it: a rollout function around yours.

slime's ``RolloutManager`` is a Ray actor. It calls the function that ``--rollout-function-path``
names with the step (``rollout_id``), the source of its prompts, and whether it evaluates. The
function draws prompts from the source (``get_samples``), as often as it likes, and may put samples
back that it did not finish (``add_samples``). :func:`generate_rollout` is such a function. It calls
yours, or hands back what yours returned, and opens the session by itself, in the actor's process.

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
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError, shorten
from rollout_cassettes.patching import Call, EntryPoint, Role
from rollout_cassettes.trajectories import Trajectory, from_columns

NAME = "slime"

FRAMEWORKS = ("slime", "miles")

_DEFAULT = "rollout.sglang_rollout.generate_rollout"
"""The rollout function of both, below the name of the package."""

_KEY = "cassettes"
"""The attribute of slime's arguments that holds our options."""

_FUNCTION = "rollout_function"
"""The option that names the wrapped function; all others are those of a session."""

_COMPARED = ("prompt", "label", "metadata", "multimodal_inputs", "response")
"""The fields of a drawn sample that a replay compares; a response has what was put back."""

_NUMBERS = ("index", "group_index", "rollout_id")
"""The fields of a sample that tell it from others of its batch."""


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Make rollouts with a rollout function of slime's, recorded or replayed.

    To be named with ``--rollout-function-path rollout_cassettes.adapters.slime.generate_rollout``.
    Options are those that ``rollout-cassettes run`` set, or else a mapping ``cassettes`` in the
    file that ``--custom-config-path`` names: ``mode``, ``path`` and the options that go with them.
    ``rollout_function`` names the function that makes the rollouts; by default it is slime's own.

    The session is opened at the first call, and closed when the source goes, or the process ends.

    Args:
        args: slime's arguments.
        rollout_id: The step.
        data_source: The source of prompts.
        evaluation: Whether it is for evaluation.

    Returns:
        What the function returned.

    Raises:
        CassetteError: If nothing says what to record or replay, or an option is unknown; where
            replaying, if the recording is missing or another.
    """
    if data_source not in _running:
        _running[data_source] = _Running(args, data_source)
    running = _running[data_source]
    running.place = Place(rollout_id, "val" if evaluation else TRAIN)
    return Rollout(args, Source(data_source, running), running.function).generate()


class Source:
    """Stands for a source of prompts, and lets sessions see what is drawn and put back.

    Args:
        source: The source.
        running: What is known of the run.
    """

    def __init__(self, source: Any, running: _Running) -> None:
        self._source = source
        self._running = running

    @property
    def place(self) -> Place:
        """Where the rollout belongs that is under way."""
        return self._running.place

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
        function: The path of the function.
    """

    def __init__(self, args: Any, source: Source, function: str) -> None:
        self.args = args
        self.source = source
        self._function = function

    @property
    def batch_size(self) -> int:
        """How many groups slime asks for."""
        size: int = self.args.rollout_batch_size
        return size

    def generate(self) -> Any:
        """Call the function. It is imported here, so that a replay needs no engine to import."""
        step, phase, _ = self.source.place
        return _load(self._function)(self.args, step, self.source, evaluation=phase != TRAIN)


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


# ---- one run of slime's


class _Running:
    """What is known of a run, for as long as its source of prompts is there.

    Args:
        args: slime's arguments.
        source: The source.

    Attributes:
        function: The path of the rollout function.
        place: Where the rollout belongs that is under way.
    """

    def __init__(self, args: Any, source: Any) -> None:
        # Above this layer: slime imports this module, and nothing else of ours, where it runs.
        from rollout_cassettes.configuration import Configuration  # noqa: PLC0415

        given = getattr(args, _KEY, None) or {}
        if not isinstance(given, Mapping):
            raise CassetteError(
                f"{_KEY} in slime's arguments is {shorten(given)}, where options belong.",
                fixes=[_REMEDY],
            )
        options = {name: value for name, value in given.items() if name != _FUNCTION}
        self.function = given.get(_FUNCTION) or _default_function()
        self.place = Place(None)
        found = Configuration.from_environment()
        if found is None and options:
            found = Configuration.parse(options, f"{_KEY} in slime's arguments")
        is_in_a_block = hasattr(Rollout.generate, "__wrapped__")
        if found is None and not is_in_a_block:
            raise CassetteError(
                "generate_rollout of rollout_cassettes.adapters.slime was called, and nothing says "
                "what to record or to replay.",
                fixes=[
                    _REMEDY,
                    (
                        "Let `rollout-cassettes run --record PATH -- ...` start the training; on a "
                        "cluster that runs already, put $ROLLOUT_CASSETTES_RUN into Ray's "
                        "runtime_env."
                    ),
                    "Name your own function with --rollout-function-path again.",
                ],
            )
        if found is not None:
            with ExitStack() as stack:
                stack.enter_context(found.opened(Path.cwd()))
                weakref.finalize(source, stack.pop_all().close)


_running: WeakKeyDictionary[Any, _Running] = WeakKeyDictionary()

_REMEDY = (
    "Put options into the file that --custom-config-path names, such as "
    f"`{_KEY}: {{mode: record, path: /shared/cassettes/run}}`."
)


def _default_function() -> str:
    """Return the rollout function of the framework that is running."""
    found = [name for name in FRAMEWORKS if name in sys.modules]
    return f"{(found or FRAMEWORKS)[0]}.{_DEFAULT}"


def _load(path: str) -> Any:
    """Return the function that a path names, as slime does it.

    Raises:
        CassetteError: If there is none, or it is one of ours, or a class of miles'.
    """
    module, _, name = path.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError) as error:
        raise _no_function(path, f"{type(error).__name__}: {error}") from error
    if not callable(function) or isinstance(function, type) or function is generate_rollout:
        raise _no_function(path, f"there it is {shorten(function)}")
    return function


def _no_function(path: str, why: str) -> CassetteError:
    return CassetteError(
        f"The rollout function {path} can't be called: {why}.",
        fixes=[f"Name a function of yours as package.module.function, with {_FUNCTION} in {_KEY}."],
    )


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
