"""The command ``git-setup``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette.manifest import SUFFIX
from rollout_cassettes.cassette.tensors import SUFFIXES
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.output import Json, display, print_json
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError

DRIVER = "rollout-cassette"
"""What git's configuration calls what makes text of a cassette's files."""

ATTRIBUTES = [
    f"step-*{suffix} -text diff={DRIVER}" for suffix in (SUFFIX, *sorted(SUFFIXES.values()))
]


def git_setup(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The directory with the cassettes in it.")
    ] = Path("cassettes"),
    json: Json = False,
) -> None:
    """Let `git diff`, `git show` and `git log -p` show cassettes as text.

    Writes a `.gitattributes` into the directory, which is to be committed, and the command that makes
    the text into the configuration of this clone. Other clones need the command once, too.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        _git(path, "rev-parse", "--git-dir")
        attributes = path / ".gitattributes"
        _add_lines(attributes, ATTRIBUTES)
        shown = ["show", "--text", "--tolerant"]
        textconv = shlex.join([sys.executable, "-m", "rollout_cassettes", *shown])
        _git(path, "config", f"diff.{DRIVER}.textconv", textconv)
        _git(path, "config", f"diff.{DRIVER}.cachetextconv", "true")
    if json:
        print_json({"attributes": str(attributes), "textconv": textconv})
    else:
        told = f"git diff shows the cassettes in {path} as text. Commit {attributes}."
        display(console, Text(visible(told)))


def _add_lines(file: Path, lines: list[str]) -> None:
    """Add the lines that a file lacks; what else is in it stays."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    missing = [line for line in lines if line not in text.splitlines()]
    if missing:
        start = text if not text or text.endswith("\n") else f"{text}\n"
        file.write_text(start + "".join(f"{line}\n" for line in missing), encoding="utf-8")


def _git(directory: Path, *arguments: str) -> None:
    if not directory.is_dir():
        raise CassetteError(
            f"There is no directory {directory}.",
            fixes=["Name the directory with the cassettes in it: rollout-cassettes git-setup PATH"],
        )
    try:
        subprocess.run(  # noqa: S603 - no shell, and no word that git takes for a command
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - the user's own git
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError as error:
        raise CassetteError("git is not installed.") from error
    except subprocess.CalledProcessError as error:
        raise CassetteError(
            f"git can't be set up for {directory}: {error.stderr.strip()}",
            fixes=["Name a directory of a git repository; `git init` makes one."],
        ) from error
