"""What applies to a cassette: the command line, then the marker, the fixture, and the ini file."""

from __future__ import annotations

import difflib
import inspect
import os
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import pytest

from rollout_cassettes.errors import CassetteError, shorten
from rollout_cassettes.session import use_cassette

_OURS = {"path", "on_failure"}
"""What the plugin decides itself."""

OPTIONS = (
    "name",
    *(name for name in inspect.signature(use_cassette).parameters if name not in _OURS),
)
"""What can be said of a test's cassette."""

_DEFAULTS = {"on_unstorable": "error"}
"""A test that can't be replayed is not worth recording."""


def resolve(
    config: pytest.Config, given: Mapping[str, Any], fixture: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options that apply, by name; the first source that says something wins.

    Args:
        config: Holds the command line and the ini file.
        given: What the marker says, or a call of ``use_rollout_cassette``.
        fixture: What ``rollout_cassette_config`` gives.

    Raises:
        CassetteError: If an option is unknown.
    """
    checked(given, "rollout_cassette")
    checked(fixture, "The fixture rollout_cassette_config")
    chosen = config.option.rollout_record_mode
    command_line = {} if chosen is None else {"record_mode": chosen}
    ini = {"record_mode": config.getini("rollout_record_mode")}
    return dict(ChainMap(command_line, dict(given), dict(fixture), ini, _DEFAULTS))


def marked(item: pytest.Item) -> dict[str, Any]:
    """Return what the markers of a test say: the test's own before its class's and its module's.

    Raises:
        CassetteError: If a marker has arguments that it doesn't take.
    """
    found: dict[str, Any] = {}
    for mark in item.iter_markers("rollout_cassette"):
        try:
            bound = _MARKER.bind(*mark.args, **mark.kwargs).arguments
        except TypeError as error:
            raise CassetteError(
                f"@pytest.mark.rollout_cassette at {item.nodeid}: {error}.",
                fixes=["It takes (name=None, steps=None, mode='cache', **options)."],
            ) from error
        options = bound.pop("options", {})
        found = {**bound, **options, **found}
    _check_name(found, f"@pytest.mark.rollout_cassette at {item.nodeid}")
    return found


def checked(given: Any, origin: str) -> None:
    """Refuse options that there are not.

    Raises:
        CassetteError: Naming those that there are; or if the name is none.
    """
    if not isinstance(given, Mapping):
        raise CassetteError(f"{origin} gives {shorten(given)}, where a dict of options belongs.")
    for name in given:
        if name not in OPTIONS:
            close = difflib.get_close_matches(str(name), OPTIONS, n=1)
            raise CassetteError(
                f"{origin} has no option {name!r}.",
                fixes=[
                    *(f"Did you mean {each}?" for each in close),
                    f"It takes {', '.join(OPTIONS)}.",
                ],
            )
    _check_name(given, origin)


def _check_name(given: Mapping[str, Any], origin: str) -> None:
    """Refuse a name that is none, such as steps that were given in its place.

    Raises:
        CassetteError: If it is no text and no path, or is empty.
    """
    name = given.get("name")
    if name is None or (isinstance(name, (str, os.PathLike)) and os.fspath(name) not in ("", ".")):
        return
    raise CassetteError(
        f"{origin} names its cassette {shorten(name)}, where a name or a path belongs.",
        fixes=[
            "Leave it out: the cassette is called like the test.",
            "Steps have a name: steps=1.",
        ],
    )


def _marker(name: Any = None, steps: Any = None, mode: Any = "cache", **options: Any) -> None:
    """Take the arguments of the marker."""


_MARKER = inspect.signature(_marker)
