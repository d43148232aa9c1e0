"""`--block-rollouts`: no live rollout outside a cassette."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.example import Example

BOTH = """
def test_outside():
    engine.generate(["a"])

@pytest.mark.rollout_cassette(steps="1")
def test_inside():
    engine.generate(["a"])
    engine.generate(["b"])
"""


@pytest.mark.parametrize("by", ["command line", "ini file"])
def test_a_live_rollout_outside_a_cassette_fails_its_test(by):
    """What the cassette's own test does is its own affair, recording included."""
    example = Example.of(BOTH)
    if by == "ini file":
        example = example.edit("[pytest]", "[pytest]\nblock_rollouts = true", file="pytest.ini")
    options = ["--block-rollouts"] if by == "command line" else []
    blocked = example.run_pytest(
        *options, "--rollout-record-mode=once", outcomes={"passed": 1, "failed": 1}
    )
    assert (
        "RolloutBlockedError: A live rollout was asked for outside a cassette, at engine:gen"
        in (blocked.output)
    )
    blocked.run_pytest(*options, outcomes={"passed": 1, "failed": 1}, changed_files=[])


def test_a_rollout_in_any_with_block_is_not_blocked():
    """Also without the plugin's own fixtures; what is inside a recorded call is a part of it."""
    Example.of("""
@rc.adapters.function
def outer():
    return engine.generate(["inner"])

def test_one(tmp_path):
    with rc.record(path=tmp_path / "cassette"):
        outer()
    with rc.replay(path=tmp_path / "cassette"):
        assert outer() == ["inner monday"]
    with pytest.raises(rc.RolloutBlockedError) as caught:
        outer()
    assert caught.value.target == "test_it:outer"
""").run_pytest("--block-rollouts", outcomes={"failed": 1})


def test_a_swallowed_block_fails_its_test_and_no_other():
    """A retry, or a loop that catches all, does not make it pass."""
    example = Example.of("""
def test_one():
    try:
        engine.generate(["a"])
    except Exception:
        pass

def test_two():
    pass
""")
    output = example.run_pytest("--block-rollouts", outcomes={"failed": 1, "passed": 1}).output
    assert "The test passed, but a rollout of it was refused: A live rollout" in output


def test_validation_is_blocked_too():
    """Though sessions leave it alone unless it is named."""
    example = Example.of(
        """
class Validating(rc.adapters.Adapter):
    name = "validating"
    step_kind = "call"
    entry_points = (rc.adapters.EntryPoint("validating", "plain", "validate"),)
    phases = frozenset({"train"})

    def place(self, call): return rc.adapters.Place(1, "val")
    def request(self, call): return None
    def capture(self, call, result, submitted): return result
    def restore(self, call, recorded, submitted, shift): return recorded.response

rc.adapters.register(Validating())

def test_one():
    import plain
    plain.validate()

@pytest.mark.rollout_cassette(phases="val")
def test_two():
    import plain
    assert plain.validate() == 1
""",
        plain="def validate():\n    return 1\n",
    )
    example.run_pytest(
        "--block-rollouts", "--rollout-record-mode=once", outcomes={"failed": 1, "passed": 1}
    )


def test_disabled_cassettes_don_t_open_a_way():
    """Then every rollout is outside one."""
    recorded = Example.of(BOTH).run_pytest("--rollout-record-mode=once", outcomes={"passed": 2})
    recorded.run_pytest("--block-rollouts", "--disable-rollout-cassettes", outcomes={"failed": 2})
