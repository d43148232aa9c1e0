"""Cassettes in fixtures of any scope, shared by tests, and in asynchronous tests."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.example import Example

FACTORY = """
@pytest.fixture(scope="{scope}")
def rollouts(use_rollout_cassette):
    with use_rollout_cassette("shared", steps=1) as session:
        answers = engine.generate(["a"])
    return answers, session

def test_one(rollouts):
    assert rollouts[0] == ["a monday"]

def test_two(rollouts):
    assert rollouts[0] == ["a monday"]
"""


@pytest.mark.parametrize("scope", ["module", "session"])
def test_a_fixture_of_a_wide_scope_opens_a_cassette(scope):
    """It is recorded once for all tests."""
    recorded = Example.of(FACTORY.format(scope=scope)).run_pytest(
        "--rollout-record-mode=once", outcomes={"passed": 2}, changed_files=["cassettes/shared"]
    )
    recorded.on("friday").run_pytest("--block-rollouts", outcomes={"passed": 2}, changed_files=[])
    missing = recorded.remove("cassettes").run_pytest(outcomes={"error": 2}).output
    assert "1. Record it: pytest --rollout-record-mode=once" in missing


def test_a_cassette_that_is_open_while_a_test_fails_is_discarded():
    """Also a fixture's, whose block the test's exception does not reach."""
    example = Example.of("""
@pytest.fixture(scope="module")
def rollouts(use_rollout_cassette):
    with use_rollout_cassette("shared"):
        yield

def test_one(rollouts):
    engine.generate(["a"])

def test_two(rollouts):
    assert engine.generate(["b"]) == ["b friday"]
""")
    example.run_pytest(
        "--rollout-record-mode=once", outcomes={"passed": 1, "failed": 1}, changed_files=[]
    )
    example.on("friday").run_pytest(
        "--rollout-record-mode=once", outcomes={"passed": 2}, changed_files=["cassettes/shared"]
    )


def test_a_test_cassette_is_open_before_the_fixtures_of_the_test():
    """And after those of wider scopes, which belong to more than this test."""
    example = Example.of("""
@pytest.fixture(scope="module")
def before():
    return engine.generate(["module"])

@pytest.fixture
def first():
    return engine.generate(["function"])

@pytest.mark.rollout_cassette
def test_one(first, before, rollout_cassette):
    assert rollout_cassette.recorded == [1]

@pytest.mark.parametrize(
    "x", [1, pytest.param(2, marks=pytest.mark.rollout_cassette("marked"))]
)
def test_two(x, first, before):
    pass
""")
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 3})
    assert recorded.cassettes() == {
        "cassettes/test_it/test_one": [1],
        "cassettes/test_it/marked": [1],
    }


def test_tests_of_one_process_may_share_a_cassette():
    """The first records it, the others replay; who would replace it is refused."""
    example = Example.of("""
@pytest.mark.rollout_cassette("shared")
@pytest.mark.parametrize("number", [1, 2])
def test_one(number):
    print(engine.generate(["a"]))
""")
    recorded = example.run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})
    assert recorded.cassettes() == {"cassettes/test_it/shared": [1]}
    refused = recorded.on("friday").run_pytest(
        "--rollout-record-mode=rewrite", outcomes={"passed": 1, "error": 1}
    )
    assert "shared was recorded in this run already, by test_it.py::test_one[1]" in refused.output


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_asynchronous_tests_have_cassettes(mode):
    """With pytest-asyncio, in either of its modes."""
    pytest.importorskip("pytest_asyncio")
    example = Example.of("""
import asyncio

@pytest.mark.asyncio
@pytest.mark.rollout_cassette
async def test_one():
    answers = await asyncio.gather(*(engine.answer(word) for word in "ab"))
    assert answers == ["a monday", "b monday"]

@pytest.mark.asyncio
async def test_two(rollout_cassette):
    assert await engine.answer("c") == "c monday"
""").add(
        {
            "pytest.ini": "[pytest]\nfilterwarnings = error\n"
            f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n"
        }
    )
    engine = (
        example.files["engine.py"].decode()
        + """

@rc.adapters.function(request_of=lambda word: word)
async def answer(word):
    return f"{word} {WORD}"
"""
    )
    example = example.add({"engine.py": engine})
    recorded = example.run_pytest(
        "--rollout-record-mode=once", outcomes={"passed": 2}, plugins=["asyncio"]
    )
    assert len(recorded.cassettes()) == 2
    failing = recorded.on("friday")
    failing.run_pytest("--block-rollouts", outcomes={"passed": 2}, plugins=["asyncio"])
    failing.run_pytest(
        "--rollout-record-mode=rewrite",
        outcomes={"failed": 2},
        changed_files=[],
        plugins=["asyncio"],
    )


def test_recorded_steps_that_are_not_asked_for_may_be_an_error():
    """As with `use_cassette`."""
    example = Example.of("""
@pytest.mark.rollout_cassette(on_unplayed="error")
def test_one():
    for _ in range(2):
        engine.generate(["a"])
""").run_pytest("--rollout-record-mode=once", outcomes={"passed": 1})
    output = (
        example.edit("range(2)", "range(1)").run_pytest(outcomes={"passed": 1, "error": 1}).output
    )
    assert "UnplayedError" in output
    assert "step 2 that were never asked for" in output
