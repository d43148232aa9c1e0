"""Cassettes of verl's trainers, shrunk: they replay in the real trainers."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.session.matching import fingerprint
from tests.verl.comparison import uids
from tests.verl.overrides import SEPARATE_ASYNC, VALIDATION

pytestmark = pytest.mark.verl

IN_ORDER = ("data.shuffle=False",)


@pytest.fixture(scope="module")
def large(train, tmp_path_factory):
    """Two steps of four prompts with two rows each, and validation; the live run too."""
    path = tmp_path_factory.mktemp("cassettes") / "large"
    with rc.record(path=path, phases=("train", "val")):
        live = train(steps=2, overrides=(*VALIDATION, *IN_ORDER))
    return live, path


def kept_prompts(path, assets, directory):
    """Write a training file with the prompts of a cassette, in the order in which it has them."""
    import pandas as pd

    frame = pd.read_parquet(assets.train)
    asked = [
        prompt
        for interaction in rc.open_cassette(path).interactions()
        if interaction.phase == "train"
        for prompt in interaction.request[0]["prompts"]["raw_prompt"]
    ]
    places = [
        next(n for n, prompt in enumerate(frame["prompt"]) if list(prompt) == list(each))
        for each in asked
    ]
    file = directory / "kept.parquet"
    frame.iloc[places].to_parquet(file, index=False)
    return file


def assert_fingerprints(adapter, path):
    """They are those that the kept rows have."""
    for interaction in rc.open_cassette(path).interactions():
        marks = fingerprint(adapter.rows(interaction.request))
        assert interaction.manifest.fingerprint == marks


def test_v1_replays_what_is_asked_for_again(train, large, assets, tmp_path):
    """Cache mode: a run with the kept prompts alone is a match, and another one is not."""
    live, path = large
    shrunk = rc.shrink(path, tmp_path / "small", rows=4)
    assert (shrunk.steps, shrunk.rows) == ([0, 1, 2], 2 * 4 + 2 * 4)
    assert_fingerprints(rc.adapters.VerlV1(), tmp_path / "small")
    prompts = kept_prompts(tmp_path / "small", assets, tmp_path)
    overrides = (*IN_ORDER, f"data.train_files={prompts}", "data.train_batch_size=2")
    overrides += ("actor_rollout_ref.actor.ppo_mini_batch_size=2",)
    with rc.replay(path=tmp_path / "small", on_unplayed="error") as session:
        again = train(steps=2, overrides=overrides)
    assert session.played == [1, 2]
    assert again.requests.training == 0
    assert again.queue_left == {}
    for old, new in zip(live.actor_batches, again.actor_batches, strict=True):
        assert len(new.keys) == 4
        assert len(uids(new)) == 2
        recorded = [row.tolist() for row in old.fields["responses"]]
        assert all(row.tolist() in recorded for row in new.fields["responses"])
    with rc.replay(path=tmp_path / "small"), pytest.raises(rc.RequestMismatchError):
        train(steps=2, overrides=IN_ORDER)


def test_v1_repeats_it_for_any_number_of_prompts(train, large, tmp_path):
    """Repeat mode: the kept groups are gone through again."""
    _, path = large
    rc.shrink(path, tmp_path / "small", rows=2, steps=[1])
    assert len(rc.open_cassette(tmp_path / "small")[1].response["batch"].keys) == 2
    with rc.replay(mode="repeat", path=tmp_path / "small") as session:
        again = train(steps=3)
    assert session.played == [1, 2, 3]
    assert [len(batch.keys) for batch in again.actor_batches] == [8, 8, 8]
    assert len(uids(again.actor_batches[0])) == 4


def test_v1_is_replayed_without_the_fields_that_nobody_reads(train, large, tmp_path):
    """What the trainer asks TransferQueue for must be there; the dataset's own columns need not."""
    live, path = large
    every = set(rc.open_cassette(path)[1].response["data"].keys())
    idle = {"prompt", "raw_prompt", "ability", "data_source", "tools_kwargs", "extra_info", "index"}
    shrunk = rc.shrink(path, tmp_path / "small", fields=every - idle)
    assert set(shrunk.dropped) == idle & every
    with rc.replay(path=tmp_path / "small"):
        again = train(steps=2, overrides=(*VALIDATION, *IN_ORDER))
    assert digest(again.parameters) == digest(live.parameters)


def test_v1_validation_is_cut_too(train, large, tmp_path):
    """Its rows are told by the uids of its own submit."""
    _, path = large
    rc.shrink(path, tmp_path / "small", rows=2)
    small = rc.open_cassette(tmp_path / "small")
    for key in small.keys:
        if key.phase == "val":
            interaction = small.interaction(key)
            kept = {row.rsplit("_", 2)[0] for row in interaction.response["batch"].keys}
            assert {uid for submit in interaction.request for uid in submit["uid"]} == kept
            assert len(interaction.manifest.fingerprint) == len(kept)


def test_asynchronous_prompts_are_kept_where_they_were_submitted(train, tmp_path):
    """What is sampled may have been submitted steps before; the rest was asked for in vain."""
    with rc.record(path=tmp_path / "large"):
        train(steps=2, overrides=SEPARATE_ASYNC)
    rc.shrink(tmp_path / "large", tmp_path / "small", rows=2)
    old, new = rc.open_cassette(tmp_path / "large"), rc.open_cassette(tmp_path / "small")
    submitted, sampled = set(), set()
    for interaction in new.interactions():
        submitted |= {uid for submit in interaction.request for uid in submit["uid"]}
        sampled |= {key.rsplit("_", 2)[0] for key in interaction.response["batch"].keys}
        assert set(interaction.response["left"]) <= submitted
    assert submitted == sampled
    assert new.keys == old.keys
    with rc.replay(mode="repeat", path=tmp_path / "small") as session:
        again = train(steps=2, overrides=SEPARATE_ASYNC)
    assert session.played == [1, 2]
    assert again.requests.training == 0


# ---- V0


@pytest.fixture
def rollouts(assets, dataset_cache):
    """Make `LocalRollouts` of verl's own V0 manager."""
    from verl.experimental.agent_loop import AgentLoopManager

    from tests.verl.event_loop import EventLoopThread
    from tests.verl.local_manager import LocalRollouts

    with EventLoopThread() as loop:
        yield lambda **options: LocalRollouts(AgentLoopManager, assets, loop, **options)


@pytest.mark.parametrize("late_rewards", [False, True])
def test_v0_replays_what_is_asked_for_again(rollouts, tmp_path, late_rewards):
    """With columns that are echoed, and without."""
    ours = rollouts(late_rewards=late_rewards)
    with rc.record(path=tmp_path / "large"):
        live = [ours.manager.generate_sequences(ours.prompts(step)) for step in (1, 2)]
    shrunk = rc.shrink(tmp_path / "large", tmp_path / "small", rows=5)
    assert (shrunk.rows, shrunk.rows_before) == (8, 16)
    assert_fingerprints(rc.adapters.VerlV0(), tmp_path / "small")
    asked = ours.llm.training
    with rc.replay(path=tmp_path / "small"):
        again = [
            ours.manager.generate_sequences(ours.prompts(step, count=2, run="b")) for step in (1, 2)
        ]
        with pytest.raises(rc.CassetteError):
            ours.manager.generate_sequences(ours.prompts(1))
    assert ours.llm.training == asked
    for old, new in zip(live, again, strict=True):
        assert len(new) == 4
        assert digest(new.batch) == digest(old.batch[:4])
        assert list(new.non_tensor_batch) == list(old.non_tensor_batch)
    with rc.replay(mode="repeat", path=tmp_path / "small"):
        assert len(ours.manager.generate_sequences(ours.prompts(7))) == 8


def test_v0_leaves_out_columns(rollouts, tmp_path):
    """Of tensors and others, in the order in which they were."""
    ours = rollouts()
    with rc.record(path=tmp_path / "large"):
        live = ours.manager.generate_sequences(ours.prompts(1))
    kept = ["responses", "input_ids", "__num_turns__"]
    shrunk = rc.shrink(tmp_path / "large", tmp_path / "small", fields=kept)
    assert "attention_mask" in shrunk.dropped
    with rc.replay(path=tmp_path / "small"):
        again = ours.manager.generate_sequences(ours.prompts(1))
    assert sorted(again.batch.keys()) == ["input_ids", "responses"]
    assert "__num_turns__" in again.non_tensor_batch
    assert again.batch["responses"].equal(live.batch["responses"])
