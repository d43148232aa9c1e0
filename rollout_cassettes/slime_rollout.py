"""The rollout function that slime and miles are told to call, in place of one's own.

It is named ``rollout_cassettes.adapters.slime.generate_rollout``. slime imports it by that path in the
Ray actor that makes rollouts, where nothing else of ours runs: so it opens the session, too.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rollout_cassettes.adapters import Place
from rollout_cassettes.adapters.slime import FRAMEWORKS, Rollout, Source, running_framework
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.configuration import Configuration
from rollout_cassettes.errors import CassetteError, shorten

_DEFAULT = "rollout.sglang_rollout.generate_rollout"
"""The rollout function of both, below the name of the package."""

_KEY = "cassettes"
"""The attribute of slime's arguments that holds our options."""

_FUNCTION = "rollout_function"
"""The option that names the wrapped function; all others are those of a session."""

_functions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""The path of the wrapped function, for each source of prompts whose run has started."""

_REMEDY = (
    "Put options into the file that --custom-config-path names, such as "
    f"`{_KEY}: {{mode: record, path: /shared/cassettes/run}}`."
)


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
    if data_source not in _functions:
        _functions[data_source] = _start(args, data_source)
    source = Source(data_source, Place(rollout_id, "val" if evaluation else TRAIN))
    return Rollout(args, source, partial(_load, _functions[data_source])).generate()


# ---- one run of slime's


def _start(args: Any, source: Any) -> str:
    """Open the session of a run, for as long as its source of prompts is there.

    Returns:
        The path of the rollout function.
    """
    given = getattr(args, _KEY, None) or {}
    if not isinstance(given, Mapping):
        raise CassetteError(
            f"{_KEY} in slime's arguments is {shorten(given)}, where options belong.",
            fixes=[_REMEDY],
        )
    options = {name: value for name, value in given.items() if name != _FUNCTION}
    found = Configuration.from_environment()
    if found is None and options:
        found = Configuration.parse(options, f"{_KEY} in slime's arguments")
    if found is not None:
        with ExitStack() as stack:
            stack.enter_context(found.opened(Path.cwd()))
            weakref.finalize(source, stack.pop_all().close)
    elif not hasattr(Rollout.generate, "__wrapped__"):  # nor is there a with-block
        raise _nothing_said()
    return given.get(_FUNCTION) or _default_function()


def _nothing_said() -> CassetteError:
    return CassetteError(
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


def _default_function() -> str:
    """Return the rollout function of the framework that is running."""
    return f"{running_framework() or FRAMEWORKS[0]}.{_DEFAULT}"


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
