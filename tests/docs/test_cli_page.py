"""The page of the command line is that of the program."""

from __future__ import annotations

import pytest

from rollout_cassettes.cli import app
from tests.cli.program import invoke
from tests.docs.make_cli_page import PAGE, page, parameters

COMMANDS = {each.name or each.callback.__name__: each.callback for each in app.registered_commands}


def test_the_page_is_current():
    """`python -m tests.docs.make_cli_page` makes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_page_says_is_what_the_program_takes(name):
    """Each option is in the command's own help, and each is explained."""
    text = invoke(name, "--help").stdout
    for each in parameters(COMMANDS[name]):
        assert each.text, each.name
        for word in each.name.split(" / ")[0].split(", "):
            assert not each.is_option or f" {word} " in text


def test_every_command_but_run_speaks_json():
    silent = [
        name
        for name, command in COMMANDS.items()
        if "--json" not in [each.name for each in parameters(command)]
    ]
    assert silent == ["run"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    """What `--install-completion` installs asks the program like this."""
    variables = {
        "_ROLLOUT_CASSETTES_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "rollout-cassettes ver",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "rollout-cassettes ver",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, prog_name="rollout-cassettes", env=variables)
    assert "verify" in done.output
