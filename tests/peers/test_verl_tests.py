"""The script that runs verl's own tests: its arguments, what it finds out, and verl's tests.

For the last, name an unpacked source tree of verl's: VERL_TREE=PATH python -m pytest tests/peers
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.peers import around, verl_tests
from tests.peers.verl_tests import InvalidRunError, Run

TREE = os.environ.get("VERL_TREE")

SMALL = """\
import pytest
from rollout_cassettes.patching import wrapper

def test_passes(): pass

def test_fails(): assert False

@pytest.mark.skip
def test_is_skipped(): pass

@pytest.fixture
def broken(): raise RuntimeError("in a fixture")

def test_has_a_broken_fixture(broken): pass

def test_minds_sessions(): assert not wrapper._handlers
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree with a small test file."""
    (tmp_path / "tree" / "tests").mkdir(parents=True)
    (tmp_path / "tree" / "tests" / "test_small.py").write_text(SMALL)
    return tmp_path / "tree"


def made(way, outcomes, file="test_a.py", patched=0):
    return Run(file, way, outcomes, {}, patched, "0.9.1")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--file", "test_gone.py"], "test_gone.py is not there"),
        (["--way", "sideways"], "invalid choice: 'sideways'"),
        (["--way", "plain"], "invalid choice: 'plain'"),
    ],
)
def test_wrong_arguments_are_told(tree, capsys, more, told):
    """Before anything is run."""
    with pytest.raises(SystemExit) as ended:
        verl_tests.main([str(tree), *more])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_tree_without_tests_is_told(tmp_path, capsys):
    """An installed verl has none, for one."""
    with pytest.raises(SystemExit):
        verl_tests.main([str(tmp_path)])
    assert "has no tests: name an unpacked source tree" in capsys.readouterr().err


def test_both_sides_know_the_same_ways():
    """The script can't import the plugin: pytest may be missing where it runs."""
    assert verl_tests.WAYS == around.WAYS


def test_the_table_counts():
    """One line for each file and way."""
    runs = [
        made("plain", {"::a": "passed", "::b": "failed", "::c": "skipped"}),
        made("recorder", {"::a": "passed", "::b": "passed", "::c": "skipped"}, patched=10),
    ]
    assert verl_tests.table(runs).splitlines() == [
        "| file | around | passed | failed | patched |",
        "| --- | --- | --- | --- | --- |",
        "| `test_a.py` | plain | 1 | 1 | 0 |",
        "| `test_a.py` | recorder | 2 | 0 | 10 |",
    ]


@pytest.mark.parametrize(
    ("outcomes", "worse"),
    [
        ({"::a": "passed", "::b": "failed"}, []),
        ({"::a": "failed", "::b": "failed"}, ["::a"]),
        ({"::a": "skipped"}, ["::a"]),
        ({"::b": "passed"}, ["::a"]),
    ],
)
def test_what_passes_by_itself_has_to_pass(outcomes, worse):
    """Failed, skipped or not run at all is worse; what fails by itself may go on failing."""
    runs = [
        made("plain", {"::a": "passed", "::b": "failed"}),
        made("plain", {"::a": "failed"}, file="test_b.py"),
        made("recorder", outcomes),
    ]
    assert [test for _, test in verl_tests.regressions(runs)] == worse


@pytest.mark.parametrize(
    ("way", "facts", "told"),
    [
        ("plain", {"outcomes": {}}, "no test passed"),
        ("plain", {"verl": "/tree/verl"}, "imported verl from the tree"),
        ("plain", {"plugin": True}, "loaded the plugin"),
        ("plugin idle", {}, "did not load the plugin"),
        ("recorder", {}, "a session was open for 0 of 1 tests"),
    ],
)
def test_a_run_that_was_not_what_it_was_to_be_is_none(way, facts, told):
    """It would prove nothing."""
    facts = {
        "outcomes": {"::a": "passed"},
        "details": {},
        "under_session": 0,
        "verl": "/installed/verl",
        "plugin": False,
        "version": "0.9.1",
        **facts,
    }
    with pytest.raises(InvalidRunError, match=told):
        verl_tests.check(facts, Path("/tree"), way)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["recorder", "recorder per test"])
def test_a_test_that_does_not_pass_in_a_session_is_found(tree, capsys, way):
    """With pytest's account of it; what fails by itself does not count."""
    status = verl_tests.main([str(tree), "--file", "test_small.py", "--way", way])
    out = capsys.readouterr().out
    assert status == 1
    assert "| `test_small.py` | plain | 2 | 2 | 0 |" in out
    assert f"| `test_small.py` | {way} | 1 | 3 | 0 |" in out
    assert f"test_small.py::test_minds_sessions passes by itself and not with: {way}" in out
    assert "assert not wrapper._handlers" in out
    assert out.count("passes by itself") == 1


@pytest.mark.slow
def test_a_file_that_can_not_be_imported_is_no_success(tree):
    """With nothing passed, nothing is proven."""
    (tree / "tests" / "test_small.py").write_text("import a_module_that_is_not_there")
    with pytest.raises(InvalidRunError, match="no test passed"):
        verl_tests.run(tree, "test_small.py", "plain")


@pytest.mark.verl
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.skipif(TREE is None, reason="VERL_TREE names no source tree of verl's")
@pytest.mark.skipif(find_spec("verl") is None, reason="needs verl")
@pytest.mark.parametrize("file", verl_tests.FILES)
def test_verls_own_tests_pass_with_the_library_around_them(file, capsys):
    """In all ways."""
    assert verl_tests.main([TREE, "--file", file]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"| `{file}")]
    assert len(lines) == 2 * len(verl_tests.WAYS)
