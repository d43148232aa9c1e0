"""Validation: live by default, and recorded and replayed if asked for."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_trainings
from tests.verl.overrides import COLOCATE_ASYNC, VALIDATION

pytestmark = pytest.mark.verl

BOTH = ("train", "val")


@pytest.fixture(scope="module", params=[(), COLOCATE_ASYNC], ids=["sync", "colocate"])
def recording(request, train, tmp_path_factory):
    """A training with validation, all of it recorded; the cassette, and the overrides."""
    path = tmp_path_factory.mktemp("cassettes") / "validated"
    overrides = (*request.param, *VALIDATION)
    with rc.record(path=path, phases=BOTH) as session:
        live = train(overrides=overrides)
    assert session.recorded == [0, 1, 2, 3]
    return live, path, overrides


def test_validation_is_filed_under_its_own_phase(recording):
    """Step 0 is the validation before training; steps 2 and 3 have both."""
    keys = rc.open_cassette(recording[1]).keys
    assert [(key.step, key.phase) for key in keys] == [
        (0, "val"),
        (1, "train"),
        (2, "train"),
        (2, "val"),
        (3, "train"),
        (3, "val"),
    ]


def test_a_replay_of_both_phases_asks_the_engine_for_nothing(train, recording):
    """Validation metrics are those of the recorded run, as is all the rest."""
    live, path, overrides = recording
    with rc.replay(path=path, phases=BOTH, on_unplayed="error"):
        again = train(overrides=overrides)
    assert live.requests.validation == 12
    assert again.requests == (0, 0)
    assert_equal_trainings(live, again)


def test_validation_stays_live_where_it_is_not_asked_for(train, recording):
    """And nobody complains that its recordings were not played."""
    live, path, overrides = recording
    with rc.replay(path=path, on_unplayed="error"):
        again = train(overrides=overrides)
    assert again.requests == (0, 12)
    assert_equal_trainings(live, again)


def test_validation_alone_is_replayed(train, recording):
    _, path, overrides = recording
    with rc.replay(path=path, phases="val") as session:
        again = train(overrides=overrides)
    assert session.played == [0, 2, 3]
    assert again.requests.validation == 0
    assert again.requests.training > 0


def test_validation_is_repeated(train, recording):
    """Six steps: the validation of step 4 gets the nearest earlier one, under its own uids."""
    _, path, overrides = recording
    with rc.replay(mode="repeat", path=path, phases=BOTH):
        again = train(6, overrides)
    assert again.requests == (0, 0)
    assert set(again.metrics) == {0, 1, 2, 3, 4, 5, 6}
    assert any(name.startswith("val-core") for name in again.metrics[4])


def test_changed_validation_prompts_are_named(train, recording):
    """They are compared as training prompts are."""
    _, path, overrides = recording
    changed = (*overrides, "data.val_max_samples=2")
    with (
        rc.replay(path=path, phases=BOTH),
        pytest.raises(rc.RequestMismatchError, match=r"step 0 \(val\)"),
    ):
        train(overrides=changed)


def test_a_manager_that_is_none_of_verls_is_told_of(train, tmp_path, monkeypatch, caplog):
    """Its validation prompts can't be seen; training goes on, and its rollouts are recorded."""
    from tests.verl import local_training

    class OwnManager:
        def __init__(self, loop, worker):
            self._loop, self._worker = loop, worker

        def generate_sequences(self, prompts):
            self._loop.run(self._worker.generate_sequences(prompts))

    monkeypatch.setattr(local_training, "LocalManager", OwnManager)
    with rc.record(path=tmp_path / "c", phases=BOTH) as session:
        train(1, VALIDATION)
    assert session.recorded == [1]
    assert session.missing == [0, 1]
    assert "derive from verl's AgentLoopManager" in caplog.text
    with rc.replay(path=tmp_path / "c"):
        assert train(1).requests == (0, 0)
