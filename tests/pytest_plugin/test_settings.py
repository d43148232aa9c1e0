"""What applies: command line, then marker, then fixture, then ini file. And where cassettes are."""

from __future__ import annotations

from typing import get_args

import pytest

from rollout_cassettes import pytest_plugin
from rollout_cassettes.pytest_plugin.place import directory_name
from rollout_cassettes.session.options import RecordMode
from tests.pytest_plugin.example import Example


def test_the_record_modes_are_those_of_use_cassette():
    """The plugin names them without importing it."""
    assert sorted(pytest_plugin.RECORD_MODES) == sorted(get_args(RecordMode))


def test_there_is_one_precedence():
    """Each source is heard where none before it says something."""
    example = Example.of("""
@pytest.fixture(scope="module")
def rollout_cassette_config():
    return {"record_mode": "all", "metadata": {"by": "fixture"}}

@pytest.mark.rollout_cassette(record_mode="once")
def test_marker():
    print(engine.generate(["marker"]))

@pytest.mark.rollout_cassette
def test_fixture():
    print(engine.generate(["fixture"]))
""").add(
        {
            "test_ini.py": """
import engine

def test_ini(rollout_cassette):
    print(engine.generate(["ini"]))
"""
        }
    )
    example = example.edit(
        "[pytest]", "[pytest]\nrollout_record_mode = new_steps", file="pytest.ini"
    )
    first = example.run_pytest("-s", outcomes={"passed": 3})
    assert len(first.cassettes()) == 3
    second = first.on("tuesday").run_pytest("-s", outcomes={"passed": 3})
    for expected in ("marker monday", "fixture tuesday", "ini monday"):
        assert expected in second.output
    third = second.on("friday").run_pytest(
        "-s", "--rollout-record-mode=rewrite", outcomes={"passed": 3}
    )
    for expected in ("marker friday", "fixture friday", "ini friday"):
        assert expected in third.output
    fourth = third.on("sunday").run_pytest(
        "-s", "--rollout-record-mode=none", outcomes={"passed": 3}, changed_files=[]
    )
    assert "sunday" not in fourth.output.partition("test session starts")[2]


def test_the_closest_marker_counts_option_by_option():
    """The test's own, then its class's, then its module's."""
    example = Example.of("""
pytestmark = pytest.mark.rollout_cassette("of-module", steps=1, record_mode="once")

@pytest.mark.rollout_cassette(name="of-class")
class TestClass:
    @pytest.mark.rollout_cassette(steps="2-3")
    def test_one(self, rollout_cassette):
        for _ in range(4):
            engine.generate(["a"])
        assert rollout_cassette.recorded == [2, 3]
""")
    recorded = example.run_pytest(outcomes={"passed": 1})
    assert recorded.cassettes() == {"cassettes/test_it/of-class": [2, 3]}


def test_a_marker_may_repeat_what_was_recorded():
    """`mode` is that of `replay`."""
    example = Example.of("""
@pytest.mark.rollout_cassette(mode="repeat")
def test_one():
    print([engine.generate(["a"]) for _ in range(1)])
""").run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    output = example.on("friday").edit("range(1)", "range(2)").run_pytest("-s").output
    assert "[['a monday'], ['a monday']]" in output


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("stps=1", "rollout_cassette has no option 'stps'.\nTo fix it:\n  1. Did you mean steps?"),
        ("path='x'", "rollout_cassette has no option 'path'"),
        ("1, 2, 'cache', 4", "too many positional arguments"),
        ("mode='loop'", "mode is one of 'cache', 'repeat'; got 'loop'"),
        ("record_mode='twice'", "record_mode is one of"),
        ("metadata=5", "'int' object is not a mapping"),
        ("range(1, 3)", "names its cassette range(1, 3), where a name or a path belongs"),
        ("''", "names its cassette '', where a name or a path belongs"),
    ],
)
def test_a_marker_that_is_wrong_fails_its_test_and_says_what_is_right(marker, told):
    """Never an option that is ignored in silence."""
    example = Example.of(f"""
@pytest.mark.rollout_cassette({marker})
def test_one():
    pass

def test_two():
    pass
""")
    output = example.run_pytest(outcomes={"passed": 1, "error": 1}).output
    assert told in output
    assert "/pytest_plugin/" not in output, "no line of this library is to blame"


def test_a_marker_that_a_conftest_adds_counts():
    """After collection, when all tests are there: it must not leave rollouts live, in silence."""
    example = Example.of("""
def test_one():
    print(engine.generate(["a"]))
""").add(
        {
            "conftest.py": """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.rollout_cassette("added"))
"""
        }
    )
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    assert recorded.cassettes() == {"cassettes/test_it/added": [1]}
    assert "a monday" in recorded.on("friday").run_pytest("-s", outcomes={"passed": 1}).output


def test_a_doctest_that_a_conftest_marks_has_a_cassette():
    example = Example.of(
        guide='"""\n>>> import engine\n>>> engine.generate(["a"])\n[\'a monday\']\n"""'
    ).add(
        {
            "conftest.py": """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("rollout_cassette")
"""
        }
    )
    run = ("--doctest-modules", "guide.py")
    recorded = example.run_pytest(*run, "--rollout-record-mode=once", outcomes={"passed": 1})
    assert recorded.cassettes() == {"cassettes/guide/guide": [1]}
    recorded.on("friday").run_pytest(*run, outcomes={"passed": 1})


@pytest.mark.parametrize(
    ("fixture", "told"),
    [
        ("rollout_cassette_config", "rollout_cassette_config names its cassette 5, where"),
        ("use_rollout_cassette", "names its cassette '', where a name or a path belongs"),
    ],
)
def test_a_name_that_is_none_is_refused_wherever_it_comes_from(fixture, told):
    example = Example.of("""
@pytest.fixture
def rollout_cassette_config():
    return {"name": 5}

def test_rollout_cassette_config(rollout_cassette):
    pass

def test_use_rollout_cassette(use_rollout_cassette):
    with use_rollout_cassette(""):
        pass
""")
    assert told in example.run_pytest("-k", f"test_{fixture}", "--rollout-record-mode=once").output


def test_a_wrong_record_mode_of_the_command_line_is_refused():
    """Before any test."""
    with pytest.raises(AssertionError, match="invalid choice: 'twice'"):
        Example.of().run_pytest("--rollout-record-mode=twice")


# ---- places


def test_each_test_has_a_place_of_its_own():
    """By module, class, and parameters; beside the test file."""
    example = Example.of().add(
        {
            "unit/test_deep.py": """
import pytest, unittest
import engine

pytestmark = pytest.mark.rollout_cassette

class TestOuter:
    class TestInner:
        @pytest.mark.parametrize("word", ["plain", "a/b", "é"])
        def test_one(self, word):
            engine.generate([word])

class TestCase(unittest.TestCase):
    def test_two(self):
        engine.generate(["two"])
"""
        }
    )
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 4})
    names = sorted(name.removeprefix("unit/cassettes/test_deep/") for name in recorded.cassettes())
    assert names[0] == "TestCase.test_two"
    assert names[1].startswith("TestOuter.TestInner.test_one[-xe9]-") or "xe9" in names[1]
    assert any(name.startswith("TestOuter.TestInner.test_one[a-b]-") for name in names)
    assert "TestOuter.TestInner.test_one[plain]" in names
    recorded.on("friday").run_pytest(outcomes={"passed": 4}, changed_files=[])


@pytest.mark.parametrize("name", ["test_one", "TestA.test_b[x-1.5]", "test_a[b=c,d+e]"])
def test_an_ordinary_name_stays_as_it_is(name):
    """It is what people look for."""
    assert directory_name(name) == name


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("test_a[b/c]", "test_a[b-c]-"),
        ("test_a[b c:d*?]", "test_a[b-c-d--]-"),
        ("test_a[../../etc]", "test_a[..-..-etc]-"),
        ("..", "--"),
        (".hidden", "hidden-"),
        ("test_" + "x" * 500, "test_xxx"),
        ("\ud800", "--"),
    ],
)
def test_an_odd_name_is_made_plain_and_kept_apart_by_a_hash(name, start):
    """Whatever file systems and shells make of it."""
    plain = directory_name(name)
    assert plain.startswith(start)
    assert len(plain) <= 120
    assert plain != directory_name(name + "?")
    assert directory_name(plain) == plain


def test_the_ini_file_and_a_fixture_choose_the_directory():
    """The fixture wins, and may be of any scope."""
    example = Example.of("""
@pytest.mark.rollout_cassette
def test_one():
    engine.generate(["a"])
""").edit("[pytest]", "[pytest]\nrollout_cassette_dir = recorded/rollouts", file="pytest.ini")
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    assert list(recorded.cassettes()) == ["recorded/rollouts/test_it/test_one"]
    for scope in ("function", "session"):
        fixture = f"""
@pytest.fixture(scope={scope!r})
def rollout_cassette_dir(tmp_path_factory, request):
    return request.config.rootpath / "elsewhere"
"""
        elsewhere = example.add({"conftest.py": f"import pytest\n{fixture}"})
        found = elsewhere.run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
        assert list(found.cassettes()) == ["elsewhere/test_one"]
