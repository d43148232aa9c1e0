"""The conformance suite: it passes what is good, and finds what is not, by the check's name."""

from __future__ import annotations

import dataclasses
import functools
import random
import uuid

import pytest

import rollout_cassettes as rc
from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.testing import little


def failing(adapter, make_run=little.make_run, **options):
    """Return the checks that an adapter fails, with what is said of each."""
    with pytest.raises(AssertionError) as caught:
        check_adapter(adapter, make_run, make_other=little.make_other, **options)
    rows = [line.strip().partition("FAILED: ") for line in str(caught.value).splitlines()]
    return {name.strip(): told for name, failed, told in rows if failed}


def test_a_good_adapter_passes():
    """Every check was made."""
    outcomes = check_adapter(little.Good(), little.make_run, make_other=little.make_other)
    assert outcomes == dict.fromkeys(CHECKS, "passed")


@pytest.mark.parametrize("adapter", [little.Handing, little.Renamed])
def test_other_good_adapters_pass(adapter):
    """One with a phase for which nothing is submitted, and one for two names of a package."""
    outcomes = check_adapter(adapter(), little.make_run, make_other=little.make_other)
    assert outcomes == dict.fromkeys(CHECKS, "passed")


def test_an_override_is_an_entry_point_too():
    make = functools.partial(little.make_run, little.Fast)
    assert set(check_adapter(little.Good(), make, checks=["replay", "identity"]).values()) == {
        "passed"
    }


@pytest.mark.parametrize(
    ("adapter", "checks", "told"),
    [
        (little.Typo, {"entry points"}, "No module named 'no_such_module'"),
        (little.Unstorable, {"recording", "empty"}, "which a cassette can't hold"),
        (little.Rounding, {"replay", "partial"}, "the recorded run and the replay differ"),
        (little.Meddling, {"unrecorded"}, "the run without a session and the recorded run differ"),
        (little.Dispatching, {"replay", "missing"}, "the engine made 9 rollouts in the replay"),
        (little.Drawing, {"generators"}, "after the replay a generator is in another state"),
        (little.Comparing, {"replay", "filling"}, "RequestMismatchError"),
        (little.Indifferent, {"mismatch"}, "came to its end, and no RequestMismatchError"),
        (little.Shifting, {"repeat"}, "ZeroDivisionError"),
        (
            little.Patching,
            {"identity"},
            "something else stands at tests.testing.little:Fast.submit",
        ),
        (little.Misreading, {"trajectories"}, "gave [{'response': 'a'}]"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_found(adapter, checks, told, monkeypatch):
    """Under the name of the promise that is broken."""
    monkeypatch.setattr(little.Fast, "submit", little.Fast.submit)  # put back what one leaves there
    found = failing(adapter(), checks=sorted(checks, key=CHECKS.index))
    assert found.keys() == checks
    assert told in found[min(checks, key=CHECKS.index)], found


@pytest.mark.parametrize(
    ("adapter", "check", "why"),
    [
        (little.Unfitting, "repeat", "NotImplementedError"),
        (little.Uncomparing, "mismatch", "requests are not compared"),
        (little.Unreadable, "trajectories", "gave none"),
    ],
)
def test_what_can_not_be_checked_is_told(adapter, check, why):
    """It is no failure, and no success."""
    outcomes = check_adapter(adapter(), little.make_run, checks=[check])
    assert outcomes[check].startswith("not checked: ")
    assert why in outcomes[check]


def test_other_prompts_have_to_be_given():
    (told,) = check_adapter(little.Good(), little.make_run, checks=["mismatch"]).values()
    assert told == "not checked: no make_other= was given, which asks for other prompts"


def test_a_run_that_is_no_use_is_told():
    """One step, no rollouts, a value that can't be held, an exception, no entry points."""

    def make(**parts):
        return lambda: dataclasses.replace(little.make_run(), **parts)

    def told(make):
        return failing(little.Good(), make, checks=["recording"])["recording"]

    assert "give it two or more" in told(lambda: little.make_run(steps=1))
    assert "rollouts() is 0" in told(make(rollouts=lambda: 0))
    assert "made 0 calls of the adapter's entry points" in told(make(train=lambda: None))
    assert "ZeroDivisionError" in told(make(train=lambda: 1 / 0))


def test_a_result_has_to_be_a_value_that_is_stored_and_compared():
    """Else it can't be told whether two runs are equal."""

    def make():
        run = little.make_run()
        return Run(train=lambda: [run.train(), object()], rollouts=run.rollouts)

    assert "train()/1" in failing(little.Good(), make, checks=["replay"])["replay"]


def test_runs_that_differ_anyway_are_not_held_against_each_other():
    """Where two runs without a session differ, a replay still has to be what was recorded."""

    def make():
        run = little.make_run()
        return Run(
            train=lambda: (random.seed(uuid.uuid4().hex), run.train())[1], rollouts=run.rollouts
        )

    outcomes = check_adapter(little.Good(), make, make_other=little.make_other)
    assert {name for name, told in outcomes.items() if told != "passed"} == {
        "unrecorded",
        "generators",
    }
    assert outcomes["unrecorded"].startswith("not checked: two runs without a session are not")


def test_a_run_that_swallows_the_engine_s_error_is_told():
    """Or makes another of it."""

    def make(handle):
        run = little.make_run()

        def train():
            try:
                return run.train()
            except Exception as error:  # noqa: BLE001 - as a careless trainer does
                return handle(error)

        return Run(train, run.rollouts)

    def wrap(error):
        raise RuntimeError("training failed") from error

    told = failing(little.Good(), lambda: make(str), checks=["exceptions", "missing"])
    assert told["exceptions"] == "the engine failed, and the run came to its end"
    assert "came to its end all the same" in told["missing"]
    told = failing(little.Good(), lambda: make(wrap), checks=["exceptions"])
    assert told["exceptions"] == "the engine's error came out as RuntimeError: training failed"


def test_the_report_says_what_came_of_every_check():
    with pytest.raises(AssertionError) as caught:
        check_adapter(little.Indifferent(), little.make_run, make_other=little.make_other)
    lines = str(caught.value).splitlines()
    assert lines[0] == "'little' fails 1 of 15 checks:"
    assert [line[2:14].strip() for line in lines[1:]] == list(CHECKS)


def test_what_several_checks_come_upon_is_told_once():
    """Most of them look at the run that is recorded, and if that fails there is one thing to read."""
    found = failing(little.Unstorable(), checks=["recording", "replay", "generators"])
    assert "which a cassette can't hold" in found["recording"]
    assert found["replay"] == found["generators"] == "as 'recording'"


def test_an_adapter_is_named_and_checks_are_chosen():
    with pytest.raises(ValueError, match="no adapter is named"):
        check_adapter("little", little.make_run)
    with pytest.raises(ValueError, match=r"there are no checks \['replaying'\]"):
        check_adapter(little.Good(), little.make_run, checks=["replaying"])


def test_it_leaves_nothing_behind(tmp_path, monkeypatch):
    """No file, no open session, and the generators where they were."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    state = random.getstate()
    check_adapter(little.Good(), little.make_run, checks=["replay"])
    assert random.getstate() == state
    assert not list(tmp_path.iterdir())


def test_it_is_there_by_the_library_s_name():
    assert rc.testing.check_adapter is check_adapter
