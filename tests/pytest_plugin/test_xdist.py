"""Tests in several processes: one cassette for each test, and one report for all."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.example import Example
from tests.pytest_plugin.test_report import REPORT, report

pytest.importorskip("xdist")

THREE = """
@pytest.mark.parametrize("word", "abc")
@pytest.mark.rollout_cassette
def test_one(word):
    engine.generate([word])
"""


def run(example, *args, **expected):
    return example.run_pytest("-n", "2", *args, plugins=["xdist"], **expected)


def test_every_worker_records_and_replays_and_the_reports_are_merged():
    """Each test has its own cassette, so that nobody waits for anyone."""
    recorded = run(Example.of(THREE), "--rollout-record-mode=once", REPORT, outcomes={"passed": 3})
    assert len(recorded.cassettes()) == 3
    assert report(recorded)[0].startswith("3 recorded (")
    renamed = recorded.on("friday").edit('"abc"', '"abd"')
    replayed = run(renamed, "--block-rollouts", REPORT, outcomes={"passed": 2, "error": 1})
    lines = report(replayed)
    assert lines[0].startswith("2 replayed (")
    assert lines[-1] == "  cassettes/test_it/test_one[c]"


def test_what_one_worker_used_is_no_orphan_to_the_others():
    """Also where nothing told them beforehand that the test uses a cassette."""
    example = Example.of("""
@pytest.mark.parametrize("word", "abcd")
def test_one(word, request):
    request.getfixturevalue("rollout_cassette")
    engine.generate([word])
""")
    recorded = run(example, "--rollout-record-mode=once", outcomes={"passed": 4})
    assert len(recorded.cassettes()) == 4
    assert "used by no test" not in run(recorded, REPORT, outcomes={"passed": 4}).output


def test_a_shared_recording_is_refused_and_its_replay_is_not():
    """Two processes would record it at once, and one would win."""
    example = Example.of("""
@pytest.mark.rollout_cassette("shared")
@pytest.mark.parametrize("number", [1, 2])
def test_one(number):
    engine.generate(["a"])

@pytest.mark.rollout_cassette("own")
def test_two():
    engine.generate(["a"])

@pytest.fixture(scope="session")
def rollouts(use_rollout_cassette):
    with use_rollout_cassette("fixture"):
        return engine.generate(["a"])

def test_three(rollouts):
    pass
""")
    refused = run(example, "--rollout-record-mode=once", outcomes={"passed": 1, "error": 3})
    assert list(refused.cassettes()) == ["cassettes/test_it/own"]
    assert "test_it/shared is shared: tests in several processes" in refused.output
    assert "pytest 'test_it.py::test_one[1]' --rollout-record-mode=once -n 0" in refused.output
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 4})
    run(
        recorded.on("friday"),
        "--rollout-record-mode=once",
        outcomes={"passed": 4},
        changed_files=[],
    )


def test_a_worker_that_crashes_takes_no_orphan_for_certain():
    """What it used died with it."""
    recorded = Example.of(THREE).run_pytest("--rollout-record-mode=once", outcomes={"passed": 3})
    crashing = recorded.edit("engine.generate", "word == 'b' and os.abort()\n    engine.generate")
    crashing = crashing.edit("import pytest", "import os, pytest")
    output = run(crashing, REPORT, outcomes={"passed": 2, "failed": 1}).output
    assert "orphans were not looked for: a worker crashed" in output


def test_groups_of_tests_keep_their_names():
    """`--dist loadgroup` adds a group to node ids, which is no part of the test's."""
    grouped = THREE.replace("def test_one", '@pytest.mark.xdist_group("g")\ndef test_one')
    arguments = ("--dist", "loadgroup", REPORT)
    recorded = run(
        Example.of(grouped), "--rollout-record-mode=once", *arguments, outcomes={"passed": 3}
    )
    unmarked = recorded.edit("@pytest.mark.rollout_cassette\n", "")
    lines = report(unmarked.run_pytest(REPORT, plugins=["xdist"]))
    assert lines[-1] == "  cassettes/test_it/test_one[c]"
    assert "used by no test" not in run(recorded, *arguments, outcomes={"passed": 3}).output
