"""The script that asks environments which adapters fit the frameworks in them."""

from __future__ import annotations

import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from tests.peers import environments

ROLLOUT, GUARD = "verl.rollouts:Manager.generate", "verl.main:run"


def facts(*, error=None, **fit):
    """Give what an environment says that has one adapter."""
    lacks = {"absent": [], "missing": [], "tolerated": [], **fit}
    found = 3 - len(lacks["absent"]) - len(lacks["missing"])
    return {
        "releases": {"verl": "0.7", "TransferQueue": None},
        "plugin": False,
        "adapters": [
            {
                "fit": {"adapter": "verl_v0", "found": found, "error": error, **lacks},
                "rollouts": [ROLLOUT],
            }
        ],
        "all": error,
    }


@pytest.mark.parametrize(
    ("said", "row"),
    [
        (facts(), "| `verl_v0` | 3 of 3 | fits |"),
        (facts(absent=[ROLLOUT]), "| `verl_v0` | 2 of 3 | not in this version |"),
        (facts(absent=[GUARD]), "| `verl_v0` | 2 of 3 | fits |"),
        (facts(missing=[GUARD], tolerated=[GUARD]), "| `verl_v0` | 2 of 3 | fits |"),
        (facts(missing=[ROLLOUT], error="Error: gone"), "| `verl_v0` | 2 of 3 | Error: gone |"),
    ],
)
def test_the_report_says_what_a_user_gets(said, row):
    """An adapter fits if a session opens, and its rollouts can come."""
    text = environments.report(said)
    assert text.startswith("verl 0.7, TransferQueue None; verl loads no plugin\n")
    assert row in text.splitlines()


def test_the_report_lists_what_is_not_there():
    """Each entry point once, and whether a session minds."""
    text = environments.report(facts(absent=[ROLLOUT], missing=[GUARD], tolerated=[GUARD]))
    assert f"missing:\n- {GUARD} (tolerated)\n" in text
    assert f"absent:\n- {ROLLOUT}\n" in text


def test_what_is_no_interpreter_is_told(tmp_path, capsys):
    """A directory that is no environment, for one."""
    with pytest.raises(SystemExit) as ended:
        environments.main([str(tmp_path)])
    assert ended.value.code == 2
    assert "is no Python interpreter" in capsys.readouterr().err


def test_an_environment_is_named_by_its_directory():
    """As well as by its interpreter."""
    (python,) = environments.parse([sys.prefix]).python
    assert python.is_file()


def test_an_environment_that_can_not_be_asked_is_a_failure(tmp_path, capsys):
    """With what its interpreter said."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no verl here >&2\nexit 1\n")
    python.chmod(0o755)
    assert environments.main([str(python)]) == 1
    assert "no verl here" in capsys.readouterr().err


@pytest.mark.verl
@pytest.mark.slow
@pytest.mark.skipif(find_spec("verl") is None, reason="needs verl")
def test_all_adapters_fit_the_verl_that_the_tests_run_with(capsys):
    """Every entry point is there."""
    assert environments.main([]) == 0
    out = capsys.readouterr().out
    assert f"verl {version('verl')}, TransferQueue {version('TransferQueue')}" in out
    rows = [row for row in out.splitlines() if row.startswith("| `verl_")]
    assert len(rows) == 3
    assert all(row.endswith("| fits |") for row in rows)
    assert "missing:" not in out
    assert "absent:" not in out
