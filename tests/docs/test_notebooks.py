"""The notebooks of docs/ run from a fresh clone, and show what they were committed with."""

from __future__ import annotations

import difflib
import re
from importlib.util import find_spec

import pytest

from tests.docs.blocks import ROOT
from tests.docs.notebooks import NOTEBOOKS, execute, read, same, shown

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("nbclient", "ipykernel")),
    reason="needs nbclient and ipykernel, of the extra `dev`",
)

BY_NAME = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@BY_NAME
def test_a_notebook_shows_what_it_was_committed_with(path):
    """Started where the notebook is, as Jupyter does."""
    committed = read(path)
    cells = [cell.source for cell in committed.cells if cell.cell_type == "code"]
    executed = execute(path, path.parent)
    for source, expected, found in zip(cells, shown(committed), shown(executed), strict=True):
        assert same(expected, found), f"{path.name}:\n\n{source}\n\n{_difference(expected, found)}"


def _difference(expected, found):
    """Return the lines that differ: whole outputs are long."""
    before, after = (
        [line for _, text in outputs for line in text.replace("><", ">\n<").splitlines()]
        for outputs in (expected, found)
    )
    return "\n".join(difflib.unified_diff(before, after, "committed", "shown", lineterm="", n=1))


def test_a_notebook_may_be_started_at_the_root():
    """As editors do; all of them look for the committed cassettes in the same way."""
    path = next(path for path in NOTEBOOKS if path.stem == "first-look-at-a-cassette")
    assert shown(execute(path, ROOT))[1]


@BY_NAME
def test_what_is_committed_tells_nothing_of_who_ran_it(path):
    """No errors, no warnings, no paths of the machine, no times of execution; cells ran in order."""
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any("execution" in cell.metadata for cell in code)
    for kind, text in (pair for pairs in shown(notebook) for pair in pairs):
        assert kind in {"stdout", "text/plain", "text/html"}
        assert not re.search(r"/(?:root|home|tmp|Users|work)/", text)


@pytest.mark.parametrize(
    ("expected", "found", "alike"),
    [
        ([("stdout", "a 1.5\n")], [("stdout", "a 2.5\n")], True),
        ([("stdout", "a 1\n")], [("stdout", "a 2\n")], False),
        ([("stdout", "on vm, 3 h ago")], [("stdout", "on vm, 40 d ago")], True),
        ([("stdout", "a")], [("text/plain", "a")], False),
        ([("stdout", "a")], [], False),
        ([], [("stderr", "a warning")], False),
    ],
)
def test_outputs_of_cells_are_compared(expected, found, alike):
    """Whole numbers, words and kinds count."""
    assert same(expected, found) is alike
