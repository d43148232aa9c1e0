"""The rollout function, called as slime's RolloutManager calls it."""

from __future__ import annotations

import gc
import json
import random

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.adapters.slime import generate_rollout
from rollout_cassettes.configuration import RUN_VARIABLE
from tests.slime import rollouts
from tests.slime.rollouts import Prompts, arguments, plain

pytestmark = pytest.mark.usefixtures("framework")


def train(args, source, steps=(0, 1, 2), evaluate=False):
    """Do as slime does; return what it got, and what the source was then."""
    log = []
    for step in steps:
        output = generate_rollout(args, step, source, evaluation=False)
        log.append((plain(output), source.offset, plain(source.buffer)))
        if evaluate:
            log.append(plain(generate_rollout(args, step, source, evaluation=True)))
    return log


def seed():
    random.seed(1)
    torch.manual_seed(1)


def test_a_replay_gives_what_the_function_returned(path):
    """And lets the source go on as in the live run: what was drawn, and what was put back."""
    with rc.record(path=path, on_unstorable="error") as session:
        live = train(arguments(), Prompts())
    assert session.recorded == [0, 1, 2]
    rollouts.calls.clear()
    with rc.replay(path=path) as session:
        assert train(arguments(), Prompts()) == live
    assert session.played == [0, 1, 2]
    assert rollouts.calls == []


@pytest.mark.parametrize("function", ["legacy", "in_a_thread"])
def test_other_functions_are_replayed_too(path, function):
    args = arguments(cassettes={"rollout_function": f"tests.slime.rollouts.{function}"})
    with rc.record(path=path):
        live = train(args, Prompts())
    rollouts.calls.clear()
    with rc.replay(path=path):
        assert train(args, Prompts()) == live
    assert rollouts.calls == []


def test_recording_changes_nothing(path):
    seed()
    args, source, expected = arguments(), Prompts(), []
    for step in range(3):
        output = rollouts.generate_rollout(args, step, source)
        expected.append((plain(output), source.offset, plain(source.buffer)))
    seed()
    with rc.record(path=path):
        assert train(arguments(), Prompts()) == expected


def test_a_run_that_goes_on_live_draws_what_is_next(path):
    """With what was put back in the replayed steps."""
    seed()
    with rc.record(path=path, steps="0-1"):
        live = train(arguments(), Prompts())
    seed()
    with rc.replay(path=path, on_miss="generate") as session:
        assert train(arguments(), Prompts()) == live
    assert session.played == [0, 1]
    assert rollouts.calls[-1] == (2, False)


def test_a_run_that_is_resumed_goes_on_in_the_cassette(path):
    """With the source as it was saved."""
    with rc.record(path=path):
        live = train(arguments(), Prompts())
    with rc.replay(path=path):
        source = Prompts()
        train(arguments(), source, steps=[0, 1])
        assert train(arguments(), source, steps=[2]) == live[2:]


def test_evaluation_is_live_unless_it_is_named(path):
    with rc.record(path=path / "train"):
        train(arguments(), Prompts(), evaluate=True)
    assert [str(key) for key in rc.open_cassette(path / "train").keys] == [
        "step 0",
        "step 1",
        "step 2",
    ]
    phases = ("train", "val")
    with rc.record(path=path / "all", phases=phases):
        live = train(arguments(), Prompts(), [0, 1], evaluate=True)
    assert [key.phase for key in rc.open_cassette(path / "all").keys].count("val") == 2
    rollouts.calls.clear()
    with rc.replay(path=path / "all", phases=phases):
        assert train(arguments(), Prompts(), [0, 1], evaluate=True) == live
    assert rollouts.calls == []


def test_another_prompt_is_a_mismatch(path):
    """The row and the field are named, and the function is not called."""
    with rc.record(path=path):
        train(arguments(), Prompts())
    rollouts.calls.clear()
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError, match="row 0") as caught:
        train(arguments(), Prompts(start=1))
    assert (caught.value.step, caught.value.field) == (0, "prompt")
    assert rollouts.calls == []


def test_a_missing_step_is_a_miss(path):
    with rc.record(path=path):
        train(arguments(), Prompts(), [0])
    with rc.replay(path=path), pytest.raises(rc.StepNotRecordedError):
        train(arguments(), Prompts(), [5])


def test_random_generators_are_left_where_the_function_left_them(path):
    seed()
    with rc.record(path=path):
        train(arguments(), Prompts())
    expected = random.random()
    seed()
    with rc.replay(path=path):
        train(arguments(), Prompts())
    assert random.random() == expected


def test_an_error_of_the_function_comes_through(path):
    args = arguments(cassettes={"rollout_function": "tests.slime.rollouts.failing"})
    with rc.record(path=path) as session, pytest.raises(ConnectionError, match="no engine"):
        train(args, Prompts())
    assert session.recorded == []


@pytest.mark.parametrize("size", [1, 3, 8])
def test_repeat_mode_fits_whole_groups(path, size):
    """Those that are gone through again get numbers that no other group has."""
    args = arguments(cassettes={"rollout_function": "tests.slime.rollouts.legacy"})
    with rc.record(path=path):
        train(args, Prompts(), [0])
    args.rollout_batch_size = size
    source = Prompts(start=50)
    with rc.replay(path=path, mode="repeat"):
        groups = generate_rollout(args, 7, source)
    assert [group[0].prompt for group in groups] == [f"prompt {at % 3}" for at in range(size)]
    assert [sample.index for group in groups for sample in group] == list(range(2 * size))
    assert [group[0].group_index for group in groups] == list(range(size))
    assert source.offset == size


def test_repeat_mode_keeps_the_output_of_a_batch_as_large(path):
    """Its class and its metrics too; evaluations are as recorded."""
    phases = ("train", "val")
    with rc.record(path=path, phases=phases):
        live = train(arguments(), Prompts(), [0], evaluate=True)
    with rc.replay(path=path, mode="repeat", phases=phases):
        again = train(arguments(), Prompts(), [4], evaluate=True)
    assert (again[0][0], again[1]) == (live[0][0], live[1])
    args = arguments()
    args.rollout_batch_size = 6
    with rc.replay(path=path, mode="repeat"):
        output = generate_rollout(args, 4, Prompts())
    assert len(output.samples) == 2 * len(live[0][0]["samples"])
    assert output.metrics == live[0][0]["metrics"]


def test_the_source_behaves_as_itself(path):
    seen = []

    def look(args, rollout_id, data_source, evaluation=False):
        seen.append((len(data_source), data_source.offset, data_source.start))

    rollouts.look = look
    args = arguments(cassettes={"rollout_function": "tests.slime.rollouts.look"})
    with rc.record(path=path):
        generate_rollout(args, 0, Prompts(start=3))
    assert seen == [(100, 0, 3)]


# ---- options, where there is no with-block


def test_options_are_read_from_slimes_arguments(path):
    """As --custom-config-path sets them; the session lasts as long as the source of prompts."""
    options = {"mode": "record", "path": str(path), "steps": "0-1"}
    source = Prompts()
    live = train(arguments(cassettes=options), source)
    assert rc.open_cassette(path).steps == [0, 1]
    with pytest.raises(rc.CassetteInUseError):
        rc.record(path=path, steps=9).__enter__()
    del source
    gc.collect()
    options = {"mode": "replay", "path": str(path), "steps": [0, 1]}
    rollouts.calls.clear()
    assert train(arguments(cassettes=options), Prompts(), [0, 1]) == live[:2]
    assert rollouts.calls == []


def test_the_environment_goes_before_them(path, monkeypatch):
    """As a whole, but for the function, which it does not name."""
    given = {"mode": "record", "path": str(path / "environment")}
    monkeypatch.setenv(RUN_VARIABLE, json.dumps(given))
    train(arguments(cassettes={"mode": "record", "path": str(path / "arguments")}), Prompts(), [0])
    assert rc.open_cassette(path / "environment").steps == [0]
    assert not (path / "arguments").exists()


def test_nothing_said_is_an_error():
    """Else a long run would go by unrecorded."""
    with pytest.raises(rc.CassetteError, match="nothing says what to record") as caught:
        train(arguments(), Prompts())
    assert "--custom-config-path" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "record", "pth": "x"}, "Did you mean path"),
        ({"mode": "play"}, "needs a mode"),
    ],
)
def test_unknown_options_are_errors(options, message):
    with pytest.raises(rc.CassetteError, match=message):
        train(arguments(cassettes=options), Prompts())


def test_options_that_are_none_are_an_error():
    args = arguments()
    args.cassettes = "record"
    with pytest.raises(rc.CassetteError, match="where options belong"):
        train(args, Prompts())


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("tests.slime.rollouts.absent", "None"),
        ("tests.slime.missing.generate", "ModuleNotFoundError"),
        ("tests.slime.rollouts.Refactored", "class"),
        ("rollout_cassettes.adapters.slime.generate_rollout", "function"),
    ],
)
def test_what_is_no_rollout_function_is_an_error(path, function, why):
    """Itself too, and a class, which miles has for another interface."""
    args = arguments(cassettes={"rollout_function": function})
    with rc.record(path=path), pytest.raises(rc.CassetteError, match=why):
        train(args, Prompts())


def test_a_replay_does_not_import_the_function(path):
    """It may need an engine's packages."""
    with rc.record(path=path):
        live = train(arguments(), Prompts())
    args = arguments(cassettes={"rollout_function": "sglang_that_is_not_here.generate"})
    with rc.replay(path=path):
        assert train(args, Prompts()) == live


def test_the_function_is_slimes_own_by_default(path, framework):
    name = framework.Sample.__module__.partition(".")[0]
    args = arguments()
    args.cassettes = None
    with (
        rc.record(path=path),
        pytest.raises(rc.CassetteError, match=rf"{name}\.rollout\.sglang_rollout"),
    ):
        train(args, Prompts())


def test_what_was_recorded_is_seen_as_trajectories(path):
    """Read without slime."""
    phases = ("train", "val")
    with rc.record(path=path, phases=phases):
        (live, *_), _ = train(arguments(), Prompts(), [0], evaluate=True)
    samples = [sample for group in live["samples"] for sample in group]
    cassette = rc.open_cassette(path)
    for row, sample in zip(cassette[0].trajectories, samples, strict=True):
        assert row.prompt == sample["prompt"]
        assert row.response == sample["response"]
        assert [*row.prompt_ids, *row.response_ids] == sample["tokens"]
        assert row.log_probs.tolist() == sample["rollout_log_probs"]
        assert (row.score, row.uid) == (sample["reward"], str(sample["group_index"]))
    _, evaluation = cassette.interactions(0)
    assert [row.prompt for row in evaluation.trajectories] == ["question 0", "question 1"]


def test_a_reward_of_several_values_has_its_score(path):
    """As slime's own for DAPO gives it; the others are kept beside it."""
    args = arguments(cassettes={"rollout_function": "tests.slime.rollouts.scored"})
    with rc.record(path=path):
        groups = generate_rollout(args, 0, Prompts())
    rewards = [sample.reward for group in groups for sample in group]
    rows = rc.open_cassette(path)[0].trajectories
    assert [row.score for row in rows] == [reward["score"] for reward in rewards]
    assert [row.metadata["reward"] for row in rows] == rewards
