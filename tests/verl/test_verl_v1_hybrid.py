"""The separate-async trainer asks how many prompts are done, and lends its replicas meanwhile."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_tensors
from tests.verl.overrides import FILTERED, HYBRID

pytestmark = pytest.mark.verl

SWITCHING = [
    "separate_async/switch/wait_samples",
    "separate_async/decision/sampleable_count",
    "separate_async/decision/remaining",
]
DECISION = "separate_async/decision/should_switch_to_rollout"


@pytest.fixture(scope="module")
def recording(train, tmp_path_factory):
    """A training that asked, and its cassette."""
    path = tmp_path_factory.mktemp("cassettes") / "hybrid"
    with rc.record(path=path) as session:
        live = train(overrides=HYBRID)
    assert session.recorded == [1, 2, 3]
    return live, path


def test_what_it_was_told_is_recorded_with_the_sample_that_follows(recording):
    """It asks at the start of a step, waits if that is too little, and asks before each sample."""
    cassette = rc.open_cassette(recording[1])
    first, second = cassette.interactions(1)
    counts = [poll for poll in first.polls if isinstance(poll, int)]
    waits = [poll for poll in first.polls if not isinstance(poll, int)]
    assert len(counts) == 2
    assert len(waits) == (counts[0] < 2)
    assert all(len(wait["uids"]) >= 2 and wait["metrics"] == {} for wait in waits)
    assert len(second.polls) == 1


def test_a_replay_answers_from_the_recording(train, recording):
    """Weights and metrics are those of the recorded run, decisions about switching included.

    What it is told after the last step belongs to no sample, and is not recorded.
    """
    live, path = recording
    with rc.replay(path=path, on_unplayed="error"):
        again = train(overrides=HYBRID)
    assert again.requests == (0, 0)
    assert_equal_tensors(live.parameters, again.parameters)
    for step in (1, 2):
        for name in SWITCHING:
            assert again.metrics[step][name] == live.metrics[step][name]
    # Later, verl weighs the seconds that waiting took against those that switching took.
    assert again.metrics[1][DECISION] == live.metrics[1][DECISION]


def test_a_poll_that_was_not_recorded_finds_everything_done(train, recording):
    """How often the trainer asks depends on the clock; it never waits during a replay."""
    _, path = recording
    with rc.replay(mode="repeat", path=path):
        again = train(overrides=HYBRID)
    assert again.requests == (0, 0)
    assert again.metrics[1]["separate_async/decision/sampleable_count"] == 4


def test_a_trainer_that_waits_less_than_the_recorded_one_gets_its_own_answers(
    train, tmp_path, monkeypatch
):
    """Whether it waits depends on the clock: it is never told of a wait where it asks for a count."""
    from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync

    monkeypatch.setattr(PPOTrainerSeparateAsync, "_switch_threshold", lambda self: 8)
    with rc.record(path=tmp_path / "c"):
        live = train(1, HYBRID)
    kinds = [type(poll) for poll in rc.open_cassette(tmp_path / "c")[1].polls]
    assert kinds == [int, dict, int]
    monkeypatch.setattr(PPOTrainerSeparateAsync, "_switch_threshold", lambda self: 0)
    with rc.replay(path=tmp_path / "c"):
        again = train(1, HYBRID)
    assert again.requests == (0, 0)
    assert_equal_tensors(live.parameters, again.parameters)


def test_prompts_that_are_replaced_while_the_trainer_waits_are_recorded(
    train, tmp_path, monkeypatch
):
    """As those that are replaced while it samples: the data set gives the same prompts again."""
    from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync

    monkeypatch.setattr(PPOTrainerSeparateAsync, "_switch_threshold", lambda self: 8)
    with rc.record(path=tmp_path / "c"):
        live = train(2, (*HYBRID, *FILTERED))
    with rc.replay(path=tmp_path / "c"):
        again = train(2, (*HYBRID, *FILTERED))
    assert again.requests == (0, 0)
    assert_equal_tensors(live.parameters, again.parameters)
    drawn = [run.trainer.train_dataloader.state_dict()["_num_yielded"] for run in (live, again)]
    assert drawn[0] == drawn[1]
    requests = [each for one in rc.open_cassette(tmp_path / "c") for each in one.request]
    assert sum(len(each["uid"]) for each in requests) > 12  # warm-up, two batches, and replacements
