"""The report, and the cassettes that no test used."""

from __future__ import annotations

from tests.pytest_plugin.example import Example

TWO = """
@pytest.mark.rollout_cassette
def test_one():
    engine.generate(["a"])

@pytest.mark.rollout_cassette
def test_two():
    engine.generate(["b"])
"""
REPORT = "--rollout-cassettes-report"


def report(example):
    """Return the report's lines."""
    lines = example.output.partition(" rollout cassettes ===")[2].splitlines()[1:]
    end = next(number for number, line in enumerate(lines) if line.startswith("==="))
    return [line for line in lines[:end] if line]


def recorded():
    return Example.of(TWO).run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})


def test_it_says_what_was_replayed_recorded_and_discarded():
    """A line for each cassette, the sums first."""
    example = Example.of(TWO + '    assert engine.WORD == "friday"\n')
    lines = report(example.run_pytest("--rollout-record-mode=once", REPORT))
    assert lines[0].startswith("1 recorded (")
    assert lines[0].endswith("), 1 discarded")
    assert lines[1].startswith("recorded   cassettes/test_it/test_one: step 1, ")
    assert lines[2] == "discarded  cassettes/test_it/test_two: step 1"
    lines = report(recorded().run_pytest(REPORT))
    assert lines[0].startswith("2 replayed (0.00 s of generation saved)")
    assert report(Example.of("def test(): pass").run_pytest(REPORT)) == ["no cassette was used"]


def test_without_the_option_nothing_is_printed():
    """Not even a heading."""
    assert "rollout cassettes ===" not in recorded().output


def test_a_cassette_that_no_test_used_is_listed_and_stays():
    """The test was renamed, or its file is gone."""
    renamed = recorded().edit("def test_two", "def test_too")
    output = renamed.run_pytest(REPORT, outcomes={"passed": 1, "error": 1}, changed_files=[])
    assert report(output)[-2:] == ["used by no test:", "  cassettes/test_it/test_two"]
    gone = recorded().remove("test_it.py").add({"test_new.py": "def test_new(): pass\n"})
    output = gone.run_pytest(REPORT, outcomes={"passed": 1}, changed_files=[])
    assert report(output)[-2:] == ["  cassettes/test_it/test_one", "  cassettes/test_it/test_two"]


def test_a_test_that_lost_its_mark_leaves_an_orphan():
    """It is there, and uses no cassette."""
    unmarked = recorded().edit("@pytest.mark.rollout_cassette\ndef test_two", "def test_two")
    assert report(unmarked.run_pytest(REPORT))[-1] == "  cassettes/test_it/test_two"


def test_the_cassette_of_a_test_that_did_not_run_is_no_orphan():
    """It was deselected, skipped, failed before, or its file was not asked for."""
    example = recorded().add({"test_other.py": "def test_other(): pass\n"})
    skipped = example.edit("def test_two", '@pytest.mark.skip("today")\ndef test_two')
    failing = example.edit("def test_two():", "def test_two():\n    assert False")
    for run in (
        example.run_pytest(REPORT, "-k", "one", outcomes={"passed": 1, "deselected": 2}),
        example.run_pytest(REPORT, "test_it.py::test_one", outcomes={"passed": 1}),
        example.run_pytest(REPORT, "test_other.py", outcomes={"passed": 1}),
        skipped.run_pytest(REPORT, outcomes={"passed": 2, "skipped": 1}),
        failing.run_pytest(REPORT, outcomes={"passed": 2, "failed": 1}),
    ):
        assert "used by no test" not in run.output


def test_a_cassette_is_expected_by_its_name_or_by_its_test():
    """The test was renamed since, or a fixture chose another directory; and now it does not run."""
    named = TWO.replace("rollout_cassette\ndef test_two", "rollout_cassette('two')\ndef test_two")
    example = Example.of(named).run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})
    renamed = example.edit("def test_two", "def test_too")
    assert "used by no test" not in renamed.run_pytest(REPORT, "-k", "one").output
    elsewhere = Example.of(
        """
@pytest.fixture
def rollout_cassette_dir(request):
    return request.path.parent / "cassettes" / "elsewhere"
"""
        + TWO
    ).run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})
    assert "cassettes/elsewhere/test_two" in elsewhere.cassettes()
    assert "used by no test" not in elsewhere.run_pytest(REPORT, "-k", "one").output


def test_a_cassette_of_a_fixture_is_judged_where_every_test_passed():
    """Nobody knows which tests need it."""
    example = Example.of("""
@pytest.fixture(scope="session")
def rollouts(use_rollout_cassette):
    with use_rollout_cassette("shared"):
        return engine.generate(["a"])

def test_one(rollouts): pass
def test_two(): pass
""").run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})
    assert "used by no test" not in example.run_pytest(REPORT).output
    unused = example.edit("test_one(rollouts)", "test_one()")
    assert report(unused.run_pytest(REPORT))[-1] == "  cassettes/shared"
    unused = unused.add({"below/test_other.py": "def test_other(): pass\n"})
    for options, directory in (
        (["-k", "one"], "."),
        (["--ignore=test_it.py"], "."),
        (["--ignore-glob=*_it.py"], "."),
        (["--collect-only"], "."),
        (["--setup-plan"], "."),
        (["--disable-rollout-cassettes"], "."),
        ([], "below"),
    ):
        part = report(unused.run_pytest(REPORT, *options, directory=directory))
        assert part[-2].startswith("not judged, since not every test ran and passed"), options


def test_cassettes_that_were_recorded_without_the_plugin_are_left_alone():
    """A script may read them, or a notebook."""
    example = Example.of("""
def test_one():
    with rc.use_cassette("cassettes/own"):
        engine.generate(["a"])
""").run_pytest(outcomes={"passed": 1}, changed_files=["cassettes/own"])
    after = example.edit("use_cassette", "replay").edit('"cassettes/own"', 'path="cassettes/own"')
    assert report(after.run_pytest(REPORT, outcomes={"passed": 1})) == ["no cassette was used"]
