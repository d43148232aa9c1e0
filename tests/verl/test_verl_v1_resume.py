"""A run that goes on from a checkpoint, with prompts in flight, and takes its rollouts from a cassette."""

from __future__ import annotations

import time

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import assert_equal_tensors, uids, untimed
from tests.verl.overrides import COLOCATE_ASYNC, SEPARATE_ASYNC

pytestmark = pytest.mark.verl

MODES = pytest.mark.parametrize(
    "mode", [COLOCATE_ASYNC, SEPARATE_ASYNC], ids=["colocate", "separate"]
)


def checkpoints(directory):
    """Save every second step."""
    return ("trainer.save_freq=2", f"trainer.default_local_dir={directory}")


def resumed(directory):
    """Go on after step 2."""
    return (
        "trainer.resume_mode=resume_path",
        f"trainer.resume_from_path={directory}/global_step_2",
    )


@MODES
@pytest.mark.parametrize("made_by", ["record", "replay"])
def test_a_replay_goes_on_at_the_right_step(train, tmp_path, mode, made_by):
    """Whether the checkpoint is the recorded run's, or that of a replay which was interrupted."""
    first, second = tmp_path / "first", tmp_path / "second"
    with rc.record(path=tmp_path / "c"):
        live = train(5, (*mode, *checkpoints(first)))
    if made_by == "replay":
        with rc.replay(path=tmp_path / "c"):
            train(3, (*mode, *checkpoints(second)))
    saved = first if made_by == "record" else second
    with rc.replay(path=tmp_path / "c") as session:
        again = train(5, (*mode, *resumed(saved)))
    assert session.played == [3, 4, 5]
    assert again.requests == (0, 0)
    assert_equal_tensors(live.parameters, again.parameters)
    steps = {step: line for step, line in live.metrics.items() if step > 2}
    assert untimed(again.metrics) == untimed(steps)
    assert len(prompts_left(again)) == len(prompts_left(live)) > 0


@MODES
def test_what_goes_live_after_a_replay_is_left_alone_by_later_steps(train, tmp_path, mode):
    """Its checkpoint holds prompts that were withheld; step 3 dispatches them, and 4 is replayed."""
    with rc.record(path=tmp_path / "c"):
        train(4, mode)
    with rc.replay(path=tmp_path / "c"):
        train(2, (*mode, *checkpoints(tmp_path / "saved")))
    with rc.replay(4, path=tmp_path / "c") as session:
        again = train(4, (*mode, *resumed(tmp_path / "saved")))
    assert session.played == [4]
    samples = rc.open_cassette(tmp_path / "c").interactions(4)
    withheld = {*samples[0].request[0]["uid"]} & {*samples[-1].response["left"]}
    in_flight = 4  # those of the checkpoint and of step 3, without what step 3 sampled
    assert len(prompts_left(again)) == in_flight + len(withheld)


@MODES
def test_what_goes_live_is_not_overwritten_by_its_own_recording(train, tmp_path, mode):
    """Prompts of the recorded run's checkpoint keep their uids, and are in flight at step 4."""
    with rc.record(path=tmp_path / "c"):
        live = train(4, (*mode, *checkpoints(tmp_path / "saved")))
    with rc.replay(4, path=tmp_path / "c") as session:
        again = train(4, (*mode, *resumed(tmp_path / "saved")))
    assert session.played == [4]
    samples = len(live.actor_batches) // 4
    old, new = (
        {uid for batch in run.actor_batches[-samples:] for uid in uids(batch)}
        for run in (live, again)
    )
    assert len(old) == len(new)
    assert not old & new


def test_what_was_finished_is_not_generated_again(train, tmp_path, monkeypatch):
    """The checkpoint's prompts that step 3 did not sample are sampled at step 4, as they are."""
    from tests.verl.local_actor import LocalActor

    original = LocalActor.save_checkpoint

    def save_when_finished(self, *args, **kwargs):
        while unfinished():
            time.sleep(0.01)
        original(self, *args, **kwargs)

    monkeypatch.setattr(LocalActor, "save_checkpoint", save_when_finished)
    ahead = (*SEPARATE_ASYNC, "trainer.v1.separate_async.num_warmup_batches=2")
    with rc.record(path=tmp_path / "c"):
        live = train(4, (*ahead, *checkpoints(tmp_path / "saved")))
    with rc.replay(3, path=tmp_path / "c"):
        again = train(4, (*ahead, *resumed(tmp_path / "saved")))
    assert again.requests.training == 16  # the prompts of steps 3 and 4
    sampled = [
        {uid for batch in run.actor_batches[-2:] for uid in uids(batch)} for run in (live, again)
    ]
    assert sampled[0] == sampled[1]  # they are the oldest, and keep their uids in a checkpoint


def unfinished():
    """Give the prompts that agent loops are at work on."""
    import transfer_queue as tq

    tags = tq.kv_list("train").get("train", {})
    return [key for key, tag in tags.items() if tag.get("status") in ("pending", "running")]


def prompts_left(run):
    """Give the prompts that were submitted and not sampled; rows have longer keys."""
    return [key for key in run.queue_left["train"] if "_" not in key]
