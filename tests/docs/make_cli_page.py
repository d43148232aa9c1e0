"""Makes docs/cli.md from the program itself: `python -m tests.docs.make_cli_page`."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from typer.models import OptionInfo

from rollout_cassettes.cli import app
from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "cli.md"

HEAD = """\
# Command line

<!-- Made from the program by `python -m tests.docs.make_cli_page`; a test compares. -->

`rollout-cassettes COMMAND --help` says the same. `python -m rollout_cassettes` is the program too.

- Every command but `run` prints JSON with `--json`: on stdout, and nothing else there.
- The exit status is 0 where all is well, 1 where something is wrong, and 2 where the command line
  itself is. Errors, warnings and progress go to stderr; progress is shown on a terminal alone.
- Colours are for terminals; `NO_COLOR=1` leaves them out there too. Tables are as wide as the terminal.
- `rollout-cassettes --install-completion` lets your shell complete commands and options.
- Commands that look at cassettes need neither torch nor a framework.

| command | what it does |
| --- | --- |
"""


@dataclass(frozen=True)
class Parameter:
    """An argument or an option, as the signature of a command declares it.

    Attributes:
        name: What a user writes; of an argument what stands for it.
        is_option: Whether it is an option.
        takes: What an option takes: a word for it, or the words to choose from.
        text: What it means.
    """

    name: str
    is_option: bool
    takes: str
    text: str

    @classmethod
    def of(cls, declared: inspect.Parameter) -> Parameter:
        """Read a parameter. Typer's own objects differ from release to release."""
        kind, info = get_args(declared.annotation)[:2]
        kinds = [each for each in (get_args(kind) or (kind,)) if each is not type(None)]
        kind = get_args(kinds[0])[0] if get_args(kinds[0]) else kinds[0]
        is_option = isinstance(info, OptionInfo)
        # In an annotation, typer takes the first declaration for what used to be the default.
        words = [info.default, *(info.param_decls or ())]
        given = [word for word in words if isinstance(word, str) and word.startswith("-")]
        name = "--" + declared.name.replace("_", "-")
        if is_option and kind is bool and not given:
            name = f"{name} / --no-{name[2:]}"
        if not is_option:
            name = info.metavar or declared.name.upper()
        return cls(", ".join(given) or name, is_option, _takes(kind, info), _text(declared, info))

    @property
    def row(self) -> str:
        """Its row in a table."""
        words = self.takes if self.takes.startswith("`") else ""
        metavar = "" if words or not self.is_option else self.takes
        return f"| `{f'{self.name} {metavar}'.strip()}`{words and f' {words}'} | {self.text} |"


def page() -> str:
    """Return the page."""
    commands = {
        each.name or each.callback.__name__: each.callback for each in app.registered_commands
    }
    rows = [f"| [`{name}`](#{name}) | {_first(call)} |" for name, call in commands.items()]
    sections = ["\n".join(_section(name, call)) for name, call in commands.items()]
    return HEAD + "\n".join(rows) + "\n\n" + "\n\n".join(sections) + "\n"


def parameters(command: Callable[..., None]) -> list[Parameter]:
    """Return the arguments and options of a command."""
    declared = inspect.signature(command, eval_str=True).parameters.values()
    return [Parameter.of(each) for each in declared]


def _section(name: str, command: Callable[..., None]) -> Iterator[str]:
    found = parameters(command)
    arguments = [each for each in found if not each.is_option]
    usage = ["rollout-cassettes", name, "[OPTIONS]", *(each.name for each in arguments)]
    yield f"## {name}\n"
    yield f"`{' '.join(usage)}`\n"
    yield _help(command)
    for title in ("argument", "option"):
        chosen = [each for each in found if each.is_option == (title == "option")]
        if chosen:
            yield f"\n| {title} | meaning |\n| --- | --- |"
            yield from (each.row for each in chosen)


def _help(command: Callable[..., None]) -> str:
    return inspect.getdoc(command) or ""


def _first(command: Callable[..., None]) -> str:
    return _help(command).partition("\n\n")[0].replace("\n", " ")


def _takes(kind: Any, info: Any) -> str:
    if kind is bool:
        return ""
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return " or ".join(f"`{word.value}`" for word in kind)
    return info.metavar or {int: "N", str: "TEXT"}.get(kind, "PATH")


def _text(declared: inspect.Parameter, info: Any) -> str:
    """Return what a parameter means, and its default where it has one."""
    text = " ".join((info.help or "").split())
    found = re.search(r" *\[default: (.+)\]$", text)
    if found:
        text = f"{text[: found.start()]} Default: {found[1]}."
    elif declared.default is declared.empty:
        text += " Needed." if isinstance(info, OptionInfo) else ""
    elif declared.default not in (None, False):
        text += f" Default: `{declared.default}`."
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
