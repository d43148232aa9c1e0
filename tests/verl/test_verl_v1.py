"""verl's V1 trainer, recorded and replayed: the real `fit()` in this process."""

from __future__ import annotations

import pytest
import torch

import rollout_cassettes as rc
from tests.verl.comparison import (
    assert_equal_batches,
    assert_equal_tensors,
    assert_equal_trainings,
    uids,
    untimed,
)
from tests.verl.overrides import SORTED, TWO_OUTPUTS, VALIDATION

pytestmark = pytest.mark.verl


@pytest.fixture(scope="module")
def recording(train, tmp_path_factory):
    """A training of three steps with validation, and its cassette."""
    path = tmp_path_factory.mktemp("cassettes") / "three-steps"
    with rc.record(path=path) as session:
        live = train(overrides=VALIDATION)
    assert session.recorded == [1, 2, 3]
    return live, path


def test_a_replay_is_equal_to_the_bit(train, recording):
    """Parameters, optimizer state, metrics but timings, and every batch of the actor."""
    live, path = recording
    with rc.replay(path=path, on_unplayed="error") as session:
        again = train(overrides=VALIDATION)
    assert session.played == [1, 2, 3]
    assert_equal_trainings(live, again)


def test_no_training_request_reaches_the_llm(train, recording):
    """Validation stays live: the LLM is asked for it, and for nothing else."""
    live, path = recording
    with rc.replay(path=path):
        again = train(overrides=VALIDATION)
    assert live.requests == (24, 12)
    assert again.requests == (0, 12)
    assert again.queue_left == {}


def test_live_runs_differ_from_each_other(train, recording):
    """The equality above is the replay's doing: without it, rows come in another order."""
    live, _ = recording
    others = (train(overrides=VALIDATION) for _ in range(12))
    assert any(untimed(other.metrics) != untimed(live.metrics) for other in others)


def test_uids_are_those_of_the_live_run(train, recording):
    """In keys, tags and the `uid` field: nothing of the recorded uids is left."""
    live, path = recording
    with rc.replay(path=path):
        again = train(overrides=VALIDATION)
    for old, new in zip(live.actor_batches, again.actor_batches, strict=True):
        assert not set(uids(old)) & set(uids(new))
        for key, uid in zip(new.keys, new.fields["uid"], strict=True):
            assert key.startswith(f"{uid}_")
        text = repr([new.tags, {n: c for n, c in new.fields.items() if n != "prompts"}])
        assert not any(uid in text for uid in uids(old))


def test_the_dataloader_advances_as_in_a_live_run(train, recording):
    """Its state after the replay is the state after the recorded run."""
    live, path = recording
    with rc.replay(path=path):
        again = train(overrides=VALIDATION)
    state = [run.trainer.train_dataloader.state_dict() for run in (live, again)]
    assert state[0]["_num_yielded"] == state[1]["_num_yielded"] == 3


@pytest.mark.parametrize("on_miss", ["generate", "record"])
def test_steps_that_were_not_recorded_go_live(train, tmp_path, on_miss):
    """Steps 1 and 3 are replayed, step 2 is generated; and kept, if so asked."""
    with rc.record([1, 3], path=tmp_path / "c"):
        live = train(overrides=SORTED)
    with rc.replay(path=tmp_path / "c", on_miss=on_miss) as session:
        again = train(overrides=SORTED)
    assert session.played == [1, 3]
    kept = [2] if on_miss == "record" else []
    assert session.recorded == kept
    assert session.generated == ([] if kept else [2])
    assert again.requests.training == 8
    assert_equal_tensors(live.parameters, again.parameters)
    assert untimed(live.metrics) == untimed(again.metrics)
    assert rc.open_cassette(tmp_path / "c").steps == sorted([1, 3, *kept])


def test_steps_that_are_not_selected_go_live(train, recording):
    """`steps="1-2"`: the third is generated, whether it was recorded or not."""
    _, path = recording
    with rc.replay("1-2", path=path) as session:
        again = train(overrides=VALIDATION)
    assert session.played == [1, 2]
    assert again.requests.training == 8


def test_a_missing_step_is_an_error_before_its_prompts_are_handed_out(train, tmp_path):
    """A replay never goes live by itself."""
    with rc.record(1, path=tmp_path / "c"):
        train(steps=1)
    with (
        rc.replay(path=tmp_path / "c") as session,
        pytest.raises(rc.StepNotRecordedError) as caught,
    ):
        train(steps=2)
    assert (caught.value.step, caught.value.recorded) == (2, [1])
    assert session.missing == [2]


def test_a_failed_session_stays_failed(train, tmp_path):
    """Seven trajectories were recorded, and seven come back; the padding is verl's own again."""
    with rc.record(path=tmp_path / "c"):
        live = train(steps=1, fail=(3,))
    assert len(rc.open_cassette(tmp_path / "c")[1].response["batch"].keys) == 7
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=1)
    assert_equal_trainings(live, again)


def test_a_prompt_whose_sessions_all_failed_stays_without_trajectories(train, tmp_path):
    """Its uid is in the request, and in no key.

    Three of eight requests succeed, so that at least one of the four prompts has no trajectory,
    whatever the order in which requests arrive.
    """
    with rc.record(path=tmp_path / "c"):
        live = train(steps=1, fail=range(1, 6))
    interaction = rc.open_cassette(tmp_path / "c")[1]
    sampled = {key.rsplit("_", 2)[0] for key in interaction.response["batch"].keys}
    assert len(set(interaction.request[0]["uid"]) - sampled) >= 1
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=1)
    assert_equal_trainings(live, again)


def test_several_outputs_of_a_session_are_kept(train, tmp_path):
    """Keys end in _0 and _1, as recorded."""
    with rc.record(path=tmp_path / "c"):
        live = train(steps=2, overrides=TWO_OUTPUTS)
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=2, overrides=TWO_OUTPUTS)
    assert {key.rsplit("_", 1)[1] for key in again.actor_batches[0].keys} == {"0", "1"}
    assert_equal_trainings(live, again)


def test_what_a_custom_sampler_returns_is_recorded_and_replayed(train, tmp_path):
    """A subclass that sorts what `super().sample()` gave is recorded once, after sorting."""
    with rc.record(path=tmp_path / "c") as session:
        live = train(overrides=SORTED)
    assert len(rc.open_cassette(tmp_path / "c").interactions()) == 3
    assert session.recorded == [1, 2, 3]
    with rc.replay(path=tmp_path / "c"):
        again = train(overrides=SORTED)
    assert_equal_trainings(live, again)


def test_metrics_that_sample_returned_are_replayed(train, tmp_path, monkeypatch):
    """What the sampler says of evicted samples is logged again."""
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    original = ReplayBuffer.sample

    def sample(self, *args, **kwargs):
        batch, metrics = original(self, *args, **kwargs)
        return batch, {**metrics, "training/off_policy/evicted_samples": 5}

    with monkeypatch.context() as patch:
        patch.setattr(ReplayBuffer, "sample", sample)
        with rc.record(path=tmp_path / "c"):
            train(steps=1)
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=1)
    assert again.metrics[1]["training/off_policy/evicted_samples"] == 5


def test_changed_prompts_are_a_mismatch_with_row_and_field(train, recording):
    """Another data seed hands out other prompts."""
    _, path = recording
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError) as caught:
        train(overrides=(*VALIDATION, "data.seed=8"))
    error = caught.value
    assert (error.step, error.phase, error.row) == (1, "train", 0)
    assert error.field in {"extra_info", "index", "prompt", "raw_prompt", "reward_model"}
    assert error.recorded != error.live
    assert str(error.live) in str(error)


def test_another_batch_size_is_a_mismatch_of_rows(train, recording):
    """Eight prompts are live, four were recorded."""
    _, path = recording
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError) as caught:
        train(overrides=(*VALIDATION, "data.train_batch_size=8"))
    assert (caught.value.row, caught.value.recorded, caught.value.live) == (None, 4, 8)


def test_changed_prompts_can_be_let_pass(train, recording):
    """`on_mismatch="warn"` replays what was recorded all the same."""
    live, path = recording
    with rc.replay(path=path, on_mismatch="warn"):
        again = train(overrides=(*VALIDATION, "data.seed=8"))
    assert_equal_batches(live.actor_batches[0], again.actor_batches[0])


def test_repeat_gives_the_nearest_step(train, recording):
    """With only step 2 recorded, steps 1 (the nearest is later) and 3 (earlier) get it too."""
    _live, path = recording
    with rc.replay(mode="repeat", path=path) as session:
        again = train(steps=5)
    assert session.played == [1, 2, 3, 4, 5]
    assert again.requests.training == 0
    third, fifth = again.actor_batches[2], again.actor_batches[4]
    assert [r.tolist() for r in third.fields["responses"]] == [
        r.tolist() for r in fifth.fields["responses"]
    ]
    assert not set(uids(third)) & set(uids(fifth))


def test_repeat_moves_step_tags_so_that_staleness_stays(train, recording):
    """A step repeated two steps later is as stale as when it was recorded."""
    _, path = recording
    with rc.replay(mode="repeat", path=path):
        again = train(steps=5)
    assert {tag["global_steps"] for tag in again.actor_batches[4].tags} == {5}
    staleness = "training/off_policy/trajectory_staleness/mean"
    assert again.metrics[5][staleness] == again.metrics[3][staleness] == 0


def test_repeat_cycles_through_whole_groups_which_stay_apart(train, recording):
    """Eight live prompts get four recorded groups twice, each under a uid of its own."""
    _, path = recording
    with rc.replay(1, mode="repeat", path=path):
        again = train(steps=1, overrides=("data.train_batch_size=8",))
    (batch,) = again.actor_batches
    assert len(batch.keys) == 16
    assert len(uids(batch)) == 8
    responses = {
        uid: sorted(
            response.tolist()
            for response, owner in zip(batch.fields["responses"], batch.fields["uid"], strict=True)
            if owner == uid
        )
        for uid in uids(batch)
    }
    groups = list(responses.values())
    assert all(groups.count(group) == 2 for group in groups)


def test_repeat_fills_groups_up(train, tmp_path):
    """One of eight trajectories is missing; in repeat mode its group goes through its own again."""
    with rc.record(path=tmp_path / "c"):
        train(steps=1, fail=(3,))
    with rc.replay(mode="repeat", path=tmp_path / "c"):
        again = train(steps=1)
    (batch,) = again.actor_batches
    assert not any(tag.get("is_padding") for tag in batch.tags)
    assert sorted(key.split("_")[1] for key in batch.keys) == ["0"] * 4 + ["1"] * 4
    assert_session_ids(batch)
    responses = {}
    for row, uid in zip(batch.fields["responses"], batch.fields["uid"], strict=True):
        responses.setdefault(uid, []).append(row.tolist())
    assert sum(first == second for first, second in responses.values()) == 1


def assert_session_ids(batch):
    """The field says what the key says."""
    numbers = [int(key.split("_")[1]) for key in batch.keys]
    assert [int(number) for number in batch.fields["session_id"]] == numbers


def test_session_ids_agree_with_the_keys(train, recording):
    """In the order in which the rows were sampled, whatever that was."""
    live, path = recording
    with rc.replay(path=path):
        again = train(overrides=VALIDATION)
    for batch in (*live.actor_batches, *again.actor_batches):
        assert_session_ids(batch)


def test_repeat_leaves_out_groups_that_are_not_asked_for(train, recording):
    """Two live prompts get two of the four recorded groups."""
    _, path = recording
    with rc.replay(1, mode="repeat", path=path):
        again = train(steps=1, overrides=("data.train_batch_size=2",))
    assert len(again.actor_batches[0].keys) == 4


def test_a_run_that_fails_in_the_middle_keeps_its_finished_steps(train, tmp_path, monkeypatch):
    """The second update raises; both rollouts before it are on the disk, the exception goes on."""
    from tests.verl.local_actor import LocalActor

    original = LocalActor.update_actor

    def fail_later(self, batch):
        if self.batches:
            raise RuntimeError("out of memory")
        return original(self, batch)

    monkeypatch.setattr(LocalActor, "update_actor", fail_later)
    with pytest.raises(RuntimeError, match="out of memory"), rc.record(path=tmp_path / "c"):
        train()
    cassette = rc.open_cassette(tmp_path / "c")
    assert cassette.steps == [1, 2]
    for interaction in cassette.interactions():
        interaction.verify()


def test_every_attribute_is_put_back(train, tmp_path):
    """After the block each entry point is the very object that it was."""
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    def attributes():
        owners = (PPOTrainer, ReplayBuffer, ReplayBufferAsync)
        return [(owner, name, value) for owner in owners for name, value in vars(owner).items()]

    before = attributes()
    with rc.record(path=tmp_path / "c"):
        assert len(before) < len(attributes())  # __init_subclass__ watches for custom samplers
        train(steps=1)
    after = attributes()
    assert [entry[:2] for entry in before] == [entry[:2] for entry in after]
    assert all(was[2] is now[2] for was, now in zip(before, after, strict=True))


def test_a_cassette_reads_as_the_batch_that_was_sampled(recording):
    """Container types and dtypes are those of verl and TransferQueue."""
    from tensordict import NonTensorStack, TensorDict
    from transfer_queue import KVBatchMeta

    response = rc.open_cassette(recording[1])[2].response
    assert type(response["batch"]) is KVBatchMeta
    assert type(response["data"]) is TensorDict
    assert response["data"]["input_ids"].dtype == torch.int64
    assert response["data"].get("responses").layout is torch.jagged
    assert type(response["data"].get("uid")) is NonTensorStack
    assert len(response["batch"].keys) == response["data"].batch_size[0] == 8
