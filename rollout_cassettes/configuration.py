"""What a run is told to record or replay, where no with-block says so: by names and plain values.

The names are those of :func:`record`, :func:`replay` and :class:`use_cassette`, read from their
signatures. A configuration comes from Hydra or from the environment, and is checked before the
training starts.
"""

from __future__ import annotations

import difflib
import inspect
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rollout_cassettes import session
from rollout_cassettes.adapters import Adapter
from rollout_cassettes.errors import CassetteError, shorten
from rollout_cassettes.session import Player, Session, options
from rollout_cassettes.session.steps import Steps

__all__ = ["MODES", "RUN_VARIABLE", "Configuration", "Option", "options_of"]

logger = logging.getLogger("rollout_cassettes")

RUN_VARIABLE = "ROLLOUT_CASSETTES_RUN"
"""Holds a configuration as JSON, for every process that inherits it."""

MODES: dict[str, Callable[..., AbstractContextManager[Session]]] = {
    "record": session.record,
    "replay": session.replay,
    "use": session.use_cassette,
}
"""What ``mode`` chooses from."""

_RENAMED = {"mode": "replay_mode"}
"""``mode`` chooses the session, so replay's own ``mode`` needs another name."""

_CHECKS: dict[str, Callable[[Any], object]] = {
    "path": options.cassette_path,
    "adapters": options.adapters,
    "steps": Steps.parse,
    "phases": options.phases,
    "metadata": options.metadata,
}


@dataclass(frozen=True)
class Option:
    """An option of a session that can be configured.

    Attributes:
        name: What it is called in a configuration.
        parameter: What the function that makes the session calls it.
        words: The words it takes; none where it takes other values.
        takes_none: Whether None is one of its values, and not only its default.
        is_switch: Whether it is True or False.
        is_list: Whether it takes a list of words.
    """

    name: str
    parameter: str
    words: tuple[str, ...] = ()
    takes_none: bool = False
    is_switch: bool = False
    is_list: bool = False

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: Any) -> Option:
        """Return the option that a parameter is."""
        parts = (hint, *get_args(hint))
        words = next((get_args(part) for part in parts if get_origin(part) is Literal), ())
        return cls(
            name=_RENAMED.get(parameter.name, parameter.name),
            parameter=parameter.name,
            words=words,
            takes_none=type(None) in parts and parameter.default is not None,
            is_switch=hint is bool,
            is_list=Iterable[str] in parts or Iterable[Adapter | str] in parts,
        )

    def check(self, value: Any) -> None:
        """Check a value.

        Raises:
            ValueError: If it is none of the words, or out of range.
            TypeError: If it is of the wrong type.
        """
        if value is None and self.takes_none:
            return
        if self.words:
            options.word(self.name, value, Literal[self.words])
        elif self.is_switch:
            options.truth(self.name, value)
        elif self.parameter in _CHECKS:
            _CHECKS[self.parameter](value)


def options_of(mode: str) -> dict[str, Option]:
    """Return the options that go with a mode, by their names in a configuration."""
    make = MODES[mode]
    # torch is imported for type checkers alone: a device is written down as text.
    names = {"torch": SimpleNamespace(device=str)}
    function = vars(make)["__init__"] if isinstance(make, type) else make
    hints = get_type_hints(function, localns=names)
    parameters = inspect.signature(make).parameters.values()
    found = [Option.of(each, hints[each.name]) for each in parameters]
    return {option.name: option for option in found}


@dataclass(frozen=True)
class Configuration:
    """What to record or replay, and how.

    Attributes:
        mode: One of :data:`MODES`.
        values: The values of its options, by name.
        origin: Where it was found, for messages.
    """

    mode: str
    values: dict[str, Any]
    origin: str

    @classmethod
    def parse(cls, given: Any, origin: str) -> Configuration:
        """Check what was written down.

        Args:
            given: A mapping with ``mode``, and with options that go with it.
            origin: Where it was found.

        Raises:
            CassetteError: If a name or a value is unknown; it lists those that are known.
        """
        if not isinstance(given, Mapping):
            raise CassetteError(
                f"{origin} is {shorten(given)}, where options belong.",
                fixes=["Say mode, path and steps, such as mode=replay path=cassettes/run."],
            )
        mode = given.get("mode")
        if not isinstance(mode, str) or mode not in MODES:
            raise CassetteError(
                f"{origin} needs a mode: {', '.join(MODES)}; got {mode!r}.",
                fixes=[*_close(mode, MODES), "Or leave all of it out, and nothing is recorded."],
            )
        known = options_of(mode)
        values = {name: value for name, value in given.items() if name != "mode"}
        for name, value in values.items():
            if name not in known:
                raise _unknown(name, mode, origin)
            try:
                known[name].check(value)
            except (TypeError, ValueError) as error:
                raise CassetteError(f"{origin}, {name}: {error}") from error
        return cls(mode, values, origin)

    @classmethod
    def from_environment(cls) -> Configuration | None:
        """Return what the environment says; None where it says nothing.

        Raises:
            CassetteError: If it can't be read, or a name or a value is unknown.
        """
        text = os.environ.get(RUN_VARIABLE)
        if not text:
            return None
        try:
            given = json.loads(text)
        except ValueError as error:
            raise CassetteError(
                f"${RUN_VARIABLE} is no JSON: {shorten(text)}",
                fixes=["Let the command line set it: rollout-cassettes run --replay PATH -- ..."],
            ) from error
        return cls.parse(given, f"${RUN_VARIABLE}")

    def to_json(self) -> str:
        """Write it as the environment holds it."""
        return json.dumps({"mode": self.mode, **self.values})

    @property
    def path(self) -> Path:
        """The cassette's directory, relative where it was given so."""
        given = self.values.get("path") or os.environ.get(options.PATH_VARIABLE)
        return Path(given or options.DEFAULT_PATH).expanduser()

    def under(self, directory: Path) -> Configuration:
        """Return it with an absolute path: a relative one counts from ``directory``."""
        return replace(self, values=self.values | {"path": str(directory / self.path)})

    def located(self, directory: Path) -> Configuration:
        """Return it with an absolute path, where it is clear what a relative one counts from.

        Args:
            directory: The directory in which the training was started.

        Raises:
            CassetteError: If the path is relative, and this process is a Ray actor.
        """
        if not self.path.is_absolute() and _is_actor():
            raise CassetteError(
                f"{self.origin}: the path {self.path} is relative, and the working directory of "
                "this Ray actor is not that in which the training was started.",
                fixes=["Give an absolute path, on a disk that the actor's node has."],
            )
        return self.under(directory)

    @contextmanager
    def opened(self, directory: Path) -> Iterator[Session]:
        """Open the session, and let its messages be heard.

        Args:
            directory: As for :meth:`located`.

        Raises:
            CassetteError: If it can't be opened here.
        """
        with _heard(), self.located(directory).session() as session:
            logger.info("%s, as %s says", _plan(session), self.origin)
            yield session

    def session(self) -> AbstractContextManager[Session]:
        """Make the session.

        Raises:
            CassetteError: If a value is out of place on this machine.
        """
        known = options_of(self.mode)
        arguments = {known[name].parameter: value for name, value in self.values.items()}
        try:
            return MODES[self.mode](**arguments)
        except (TypeError, ValueError) as error:
            raise CassetteError(f"{self.origin}: {error}") from error


def _plan(session: Session) -> str:
    what, way = ("replaying", "from") if isinstance(session, Player) else ("recording", "to")
    selected = session.selection.text
    steps = "all steps" if selected == "all" else f"steps {selected}"
    return f"{what} {steps} {way} {session.path}"


@contextmanager
def _heard() -> Iterator[None]:
    """Let the session's messages through: verl 0.9.1, for one, sets the root logger to WARNING.

    A level that someone has chosen for this library stays as it is.
    """
    chosen = logger.level
    if chosen == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(chosen)


def _is_actor() -> bool:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return False
    return ray.get_runtime_context().get_actor_id() is not None


def _unknown(name: Any, mode: str, origin: str) -> CassetteError:
    known = options_of(mode)
    others = [other for other in MODES if name in options_of(other)]
    elsewhere = [f"{name} goes with mode={' and mode='.join(others)}."] if others else []
    return CassetteError(
        f"{origin} has {name!r}, which is no option of mode={mode}.",
        fixes=[*_close(name, known), *elsewhere, f"mode={mode} takes {', '.join(known)}."],
    )


def _close(name: Any, known: Mapping[str, Any]) -> list[str]:
    found = difflib.get_close_matches(str(name), known, n=1)
    return [f"Did you mean {found[0]}?"] if found else []
