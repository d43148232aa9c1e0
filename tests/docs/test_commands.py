"""The commands of the README are those that there are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Page
from tests.docs.running import commands

README = Page.read(Path("README.md"))
TASKS = re.findall(
    r"^\| [^|]+ \| `([^`]+)` \|$", README.prose.partition("## Contributing")[2], re.MULTILINE
)
TOOLS = {"ruff": "ruff", "mypy": "mypy", "lint-imports": "import-linter", "python": "pytest"}
TOOLS["sphinx-build"] = "sphinx"


def pyproject():
    """Return the text of pyproject.toml: Python 3.10 can't parse it."""
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_there_is_a_command_for_each_daily_task():
    """Tests, documentation, lint, types, layers."""
    assert len(TASKS) >= 7


@pytest.mark.parametrize("task", TASKS)
def test_a_daily_command_names_what_exists(task):
    """A tool of the dev extra, and files of the repository."""
    for command in task.split(" && "):
        program, *arguments = command.split()
        if program.startswith(".venv/bin/"):
            assert f'"{TOOLS[program.removeprefix(".venv/bin/")]}>=' in pyproject()
        else:
            assert (ROOT / program).exists()
        for path in (argument for argument in arguments if "/" in argument):
            assert (ROOT / path).exists()


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_stand_on_their_own(name):
    """One line each; they make the environment, install what they need, and run."""
    block = README.named(name)
    assert len(block.text.splitlines()) == 1
    make, install, run = commands(block)
    assert make == "python3.11 -m venv .venv"
    constraints, extras = re.fullmatch(
        r"\.venv/bin/pip install -c (\S+) -e '\.\[([\w,]+)\]'", install
    ).groups()
    assert (ROOT / constraints).exists()
    assert all(f"\n{extra} = [" in pyproject() for extra in extras.split(","))
    assert run.startswith(".venv/bin/")


def test_the_demo_is_installed():
    """Under the name that the README calls it by."""
    program = commands(README.named("demo"))[-1].split()[0].removeprefix(".venv/bin/")
    assert f"\n{program} = " in pyproject()
    assert (Path(sys.executable).parent / program).exists()
