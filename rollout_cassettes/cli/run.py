"""The command ``run``: a training of verl's or slime's, recorded or replayed, with no change to its code."""

from __future__ import annotations

import enum
import inspect
import os
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.configuration import MODES, RUN_VARIABLE, Configuration, Option, options_of
from rollout_cassettes.errors import CassetteError

__all__ = ["SETTINGS", "run"]

SETTINGS = {"allow_interspersed_args": False}
"""What follows the command is the command's, options included."""

PLUGINS = "verl.plugins"
PLUGINS_VARIABLE = "VERL_USE_EXTERNAL_PLUGINS"
PLUGIN = "rollout_cassettes"

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses, as shells have them."""

_SHORTER = {"replay_mode": "mode"}
"""On a command line ``--replay`` says which session it is, and leaves ``--mode`` free."""

_HELP = {
    "record": "Record to this directory.",
    "replay": "Replay from this directory.",
    "use": "Replay from this directory, once it is recorded; see --record-mode.",
    "steps": "The steps, such as 1-5,8; all by default.",
    "adapters": "What to intercept, by names such as verl_v1,my_adapter; all that are known by default.",
    "phases": "The phases, such as train,val; training rollouts alone by default.",
    "metadata": "Put into every manifest; may be given several times.",
}


def run(command: list[str], **given: Any) -> None:
    """Run a training with verl or slime, recorded or replayed: `run --replay PATH -- COMMAND`.

    Takes the place of this process, so the exit status is the command's. The options are those of
    `record`, `replay` and `use_cassette` in the API.
    """
    configuration = _configuration(given)
    try:
        _require_plugin()
        os.environ[RUN_VARIABLE] = configuration.to_json()
        os.execvp(command[0], command)  # noqa: S606 - it is the user's own command
    except CassetteError as error:
        raise _failed(str(error), 1) from error
    except FileNotFoundError as error:
        raise _failed(f"there is no command {command[0]}", NOT_FOUND) from error
    except OSError as error:
        raise _failed(f"{command[0]} can't be run: {error.strerror}", NOT_EXECUTABLE) from error


def _failed(what: str, status: int) -> typer.Exit:
    Console(stderr=True).print(Text.assemble(("Error:", "red"), f" {what}"), soft_wrap=True)
    return typer.Exit(status)


def _configuration(given: dict[str, Any]) -> Configuration:
    """Return what the options say, with an absolute path.

    Raises:
        typer.BadParameter: If they don't go together, or a value is unknown.
    """
    chosen = [mode for mode in MODES if given[mode] is not None]
    if len(chosen) != 1:
        raise typer.BadParameter(f"give one of {', '.join(f'--{mode}' for mode in MODES)}")
    (mode,) = chosen
    known = options_of(mode)
    values = {name: given[name] for name in _options() if given[name] not in (None, [])}
    for name in values:
        if name not in known:
            others = ", ".join(_flag(other) for other in known if other != "path")
            raise typer.BadParameter(
                f"{_flag(name)} doesn't go with --{mode}, which takes {others}"
            )
    plain = {name: _plain(name, value) for name, value in values.items()}
    try:
        parsed = Configuration.parse({"mode": mode, "path": given[mode], **plain}, "command line")
    except CassetteError as error:
        raise typer.BadParameter(str(error)) from error
    return parsed.under(Path.cwd())


def _plain(name: str, value: Any) -> Any:
    """Return an option's value as a configuration holds it."""
    if name == "metadata":
        pairs = [text.partition("=") for text in value]
        if not all(equals for _, equals, _ in pairs):
            raise typer.BadParameter("--metadata is written NAME=VALUE")
        return {key: text for key, _, text in pairs}
    if _options()[name].is_list:
        return value.split(",")
    if isinstance(value, enum.Enum):
        return None if value.value == "none" and _options()[name].takes_none else value.value
    return value


def _require_plugin() -> None:
    """Refuse to run a command that would record nothing, in silence.

    Raises:
        CassetteError: If verl would not load the plugin.
    """
    if not entry_points(group=PLUGINS, name=PLUGIN):
        raise CassetteError(
            f"rollout_cassettes is installed without its entry point in {PLUGINS!r}, by which verl "
            "finds it.",
            fixes=["Install it again, with pip."],
        )
    allowed = os.environ.get(PLUGINS_VARIABLE, "auto").strip().lower()
    if allowed != "auto" and PLUGIN not in map(str.strip, allowed.split(",")):
        raise CassetteError(
            f"{PLUGINS_VARIABLE}={allowed} keeps verl from loading rollout_cassettes.",
            fixes=[f"Add {PLUGIN} to it, or leave it out."],
        )
    verl = find_spec("verl")
    # verl 0.8.0 loads none. Its version is not asked: checkouts have the last release's.
    if verl and verl.origin and PLUGINS not in Path(verl.origin).read_text(encoding="utf-8"):
        raise CassetteError(
            f"The verl in {Path(verl.origin).parent} loads no plugins: nothing would be recorded or "
            "replayed.",
            fixes=[
                "Install verl 0.9.0 or newer.",
                "Put a with-block around fit, in the process that runs the trainer.",
            ],
        )


# ---- the options, from the signatures of the sessions


def _options() -> dict[str, Option]:
    """Return the options of all modes, but for the path."""
    every = {name: option for mode in MODES for name, option in options_of(mode).items()}
    return {name: option for name, option in every.items() if name != "path"}


def _flag(name: str) -> str:
    return f"--{_SHORTER.get(name, name).replace('_', '-')}"


def _signature() -> inspect.Signature:
    """Return the signature of :func:`run` as Typer is to see it, an option for each parameter."""
    return inspect.Signature(list(_parameters()))


def _parameters() -> Iterator[inspect.Parameter]:
    command = typer.Argument(metavar="COMMAND [ARGS]...", help="The training, after `--`.")
    yield _keyword("command", Annotated[list[str], command], default=inspect.Parameter.empty)
    for mode in MODES:
        path = typer.Option(f"--{mode}", metavar="PATH", help=_HELP[mode])
        yield _keyword(mode, Annotated[str | None, path])
    for name, option in _options().items():
        yield _keyword(name, Annotated[_kind(option), _shown(option)])


def _keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _kind(option: Option) -> Any:
    if option.name == "metadata":
        return list[str] | None
    if option.is_switch:
        return bool | None
    if option.words:
        words = [*option.words, "none"] if option.takes_none else option.words
        make: Any = enum.Enum
        return make(option.name, {word: word for word in words}) | None
    return str | None


def _shown(option: Option) -> Any:
    users = " or ".join(f"--{mode}" for mode in MODES if option.name in options_of(mode))
    text = f"{_HELP.get(option.name) or _described(option)} With {users}."
    if option.is_switch:
        return typer.Option(help=text)
    metavar = "NAME=VALUE" if option.name == "metadata" else None
    return typer.Option(_flag(option.name), metavar=metavar, help=text)


def _described(option: Option) -> str:
    """Return the first sentence that the docstring of a session has for an option."""
    mode = next(mode for mode in MODES if option.name in options_of(mode))
    entry = re.search(
        rf"^    {option.parameter}: (.+(?:\n {{8}}.+)*)",
        inspect.getdoc(MODES[mode]) or "",
        re.MULTILINE,
    )
    text = "" if entry is None else " ".join(entry[1].replace("``", "").split())
    return text.partition(". ")[0].removesuffix(".") + "."


run.__signature__ = _signature()  # type: ignore[attr-defined]
