"""Recording, replaying, and what becomes of the cassettes of tests that fail."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.example import Example

ONE = "cassettes/test_it/test_one"

MARKED = """
@pytest.mark.rollout_cassette
def test_one():
    assert engine.generate(["a", "b"]) == ["a monday", "b monday"]
"""


def test_a_test_is_recorded_replayed_edited_and_recorded_anew():
    """The whole life of a cassette."""
    recorded = Example.of(MARKED).run_pytest(
        "--rollout-record-mode=once", outcomes={"passed": 1}, changed_files=[ONE]
    )
    replayed = recorded.on("tuesday").run_pytest(outcomes={"passed": 1}, changed_files=[])
    edited = replayed.edit('["a", "b"])', '["a", "c"])').edit('"b monday"', '"c monday"')
    failed = edited.run_pytest(outcomes={"failed": 1}, changed_files=[])
    assert "RequestMismatchError" in failed.output
    assert "row 1, field 'request' was 'b', and is now 'c'" in failed.output
    command = "pytest test_it.py::test_one --rollout-record-mode=rewrite"
    assert f"Record it again: {command}" in failed.output
    assert "_compare" not in failed.output, "the library's own frames are left out"
    anew = failed.on("monday").run_pytest(
        *command.split()[1:], outcomes={"passed": 1}, changed_files=[ONE]
    )
    anew.on("friday").run_pytest(outcomes={"passed": 1}, changed_files=[])


def test_a_missing_cassette_fails_the_test_with_the_command_that_records_it():
    """As what it is, and by a command that can be copied."""
    example = Example.of(
        MARKED.replace("def test_one():", "@pytest.mark.parametrize('x', ['$a'])\ndef test_one(x):")
    )
    missing = example.run_pytest(outcomes={"error": 1}, changed_files=[])
    assert "There is no cassette at /project/cassettes/test_it/test_one[-a]-" in missing.output
    command = "pytest 'test_it.py::test_one[$a]' --rollout-record-mode=once"
    assert f"1. Record it: {command}" in missing.output
    assert "2. If the test makes no rollout, it needs no mark." in missing.output
    recorded = missing.run_pytest(
        "test_it.py::test_one[$a]", "--rollout-record-mode=once", outcomes={"passed": 1}
    )
    assert len(recorded.cassettes()) == 1


def test_the_command_is_right_where_pytest_was_started():
    """Which need not be the root directory."""
    example = Example.of().add({"sub/test_it.py": Example.of(MARKED).files["test_it.py"].decode()})
    output = example.run_pytest("test_it.py", outcomes={"error": 1}, directory="sub").output
    assert "pytest test_it.py::test_one --rollout-record-mode=once" in output


@pytest.mark.parametrize("mode", ["once", "new_steps", "all", "rewrite"])
def test_a_failing_test_leaves_no_cassette_where_there_was_none(mode):
    """Not even an empty directory: the next run records."""
    failing = Example.of(MARKED).on("sunday")
    failed = failing.run_pytest(
        f"--rollout-record-mode={mode}",
        "--rollout-cassettes-report",
        outcomes={"failed": 1},
        changed_files=[],
    )
    assert "discarded  cassettes/test_it/test_one: step 1" in failed.output


@pytest.mark.parametrize("mode", ["new_steps", "all", "rewrite"])
def test_a_failing_test_keeps_the_old_cassette(mode):
    """To the byte; what it recorded is discarded."""
    recorded = Example.of(MARKED).run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    failing = recorded.on("sunday").edit("def test_one():", "def test_one():\n    more = 2")
    failing = failing.edit('"b monday"]', '"b monday"]\n    assert engine.generate(["c"]) == more')
    failing.run_pytest(f"--rollout-record-mode={mode}", outcomes={"failed": 1}, changed_files=[])


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [("pytest.skip('enough')", "skipped"), ("pytest.xfail('as expected')", "xfailed")],
)
def test_a_test_that_does_not_come_to_its_end_records_nothing(ending, outcome):
    """Its cassette would lack what comes after."""
    example = Example.of(MARKED + f"    {ending}\n")
    example.run_pytest("--rollout-record-mode=once", outcomes={outcome: 1}, changed_files=[])


def test_a_test_with_a_subtest_that_fails_records_nothing():
    """Though its own function ends well."""
    example = Example.of("""
@pytest.mark.rollout_cassette
def test_one(subtests):
    engine.generate(["a"])
    with subtests.test("bad"):
        assert engine.WORD == "friday"
    with subtests.test("good"):
        pass
""")
    example.run_pytest("--rollout-record-mode=once", changed_files=[])
    recorded = example.on("friday").run_pytest("--rollout-record-mode=once")
    assert recorded.cassettes() == {ONE: [1]}


def test_a_test_whose_fixture_fails_records_nothing():
    """It opened its cassette, and never ran."""
    example = Example.of(
        MARKED.replace("test_one()", "test_one(broken)")
        + "\n@pytest.fixture\ndef broken():\n    engine.generate(['x'])\n    assert False\n"
    )
    example.run_pytest("--rollout-record-mode=once", outcomes={"error": 1}, changed_files=[])


def test_new_steps_are_added_and_all_steps_replaced():
    """`new_steps` keeps what is there, `all` does not."""
    example = Example.of("""
@pytest.mark.rollout_cassette
def test_one():
    print([engine.generate(["a"]) for _ in range(1)])
""")
    recorded = example.run_pytest("--rollout-record-mode=once", "-s")
    longer = recorded.on("tuesday").edit("range(1)", "range(2)")
    failed = longer.run_pytest(outcomes={"failed": 1}, changed_files=[])
    assert (
        "Record what is missing: pytest test_it.py::test_one --rollout-record-mode=new_steps"
        in (failed.output)
    )
    added = longer.run_pytest("--rollout-record-mode=new_steps", "-s", outcomes={"passed": 1})
    assert "[['a monday'], ['a tuesday']]" in added.output
    assert added.cassettes() == {ONE: [1, 2]}
    replaced = added.on("friday").run_pytest("--rollout-record-mode=all", "-s")
    assert "[['a friday'], ['a friday']]" in replaced.output
    assert replaced.edit("range(2)", "range(1)").run_pytest(
        "--rollout-record-mode=rewrite", outcomes={"passed": 1}
    ).cassettes() == {ONE: [1]}


def test_disabled_cassettes_let_rollouts_go_live():
    """Nothing is recorded or replayed, and the session is there all the same."""
    example = Example.of("""
def test_one(rollout_cassette, use_rollout_cassette):
    rollout_cassette.step = 3
    with use_rollout_cassette("shared") as shared:
        assert engine.generate(["a"]) == ["a tuesday"]
    assert rollout_cassette.played == rollout_cassette.recorded == shared.recorded == []
""").on("tuesday")
    example.run_pytest(
        "--disable-rollout-cassettes",
        "--rollout-record-mode=once",
        outcomes={"passed": 1},
        changed_files=[],
    )


def test_a_test_that_swallows_a_refusal_fails():
    """Else it would pass without its rollouts."""
    example = Example.of("""
def swallow(prompts):
    try:
        return engine.generate(prompts)
    except Exception:
        return []

@pytest.mark.rollout_cassette
def test_one():
    swallow(["a"])
""")
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    failed = recorded.edit('swallow(["a"])', 'swallow(["b"])').run_pytest(outcomes={"failed": 1})
    assert "The test passed, but a rollout of it was refused: The live request" in failed.output


def test_what_can_not_be_stored_fails_the_test_that_is_recorded():
    """A cassette that can't be replayed is not worth having."""
    example = Example.of(MARKED).edit("return [", "return [object(), *[", file="engine.py")
    example = example.edit("in prompts]", "in prompts]]", file="engine.py").edit("==", "!=")
    failed = example.run_pytest(
        "--rollout-record-mode=once", outcomes={"failed": 1}, changed_files=[]
    )
    assert "Step 1 can't be recorded in /project/cassettes/test_it/test_one: response/0" in (
        failed.output
    )


def test_the_manifest_names_the_test_and_holds_its_metadata(tmp_path):
    """Beside what the test itself gives."""
    import rollout_cassettes as rc

    recorded = Example.of(
        MARKED.replace("rollout_cassette\n", "rollout_cassette(metadata={'git': 'abc'})\n")
    ).run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    for name, data in recorded.files.items():
        if name.startswith(ONE):
            (tmp_path / name.rpartition("/")[2]).write_bytes(data)
    assert rc.open_cassette(tmp_path)[1].manifest.metadata == {
        "git": "abc",
        "node_id": "test_it.py::test_one",
    }
