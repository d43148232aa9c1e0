"""V0 rollouts of verl, recorded and replayed through the real managers and workers."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import numpy as np
import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.digest import digest

pytestmark = pytest.mark.verl


@pytest.fixture(scope="module")
def loop():
    """Where workers are made."""
    from tests.verl.event_loop import EventLoopThread

    with EventLoopThread() as thread:
        yield thread


@pytest.fixture
def rollouts(assets, dataset_cache, loop):
    """Make `LocalRollouts` of verl's own V0 manager, or of a class of yours."""
    from verl.experimental.agent_loop import AgentLoopManager

    from tests.verl.local_manager import LocalRollouts

    def make(manager_class=AgentLoopManager, **options):
        return LocalRollouts(manager_class, assets, loop, **options)

    return make


def assert_equal(live, again):
    """Compare two outputs to the bit, apart from what the manager measures with a clock."""
    assert digest(live) == digest(again)


def test_a_replay_is_equal_to_the_bit(rollouts, tmp_path):
    """Output, column order, meta info with its timings; and the LLM is not asked."""
    ours = rollouts()
    with rc.record(path=tmp_path / "c") as session:
        live = [ours.manager.generate_sequences(ours.prompts(step)) for step in (1, 2)]
    assert session.recorded == [1, 2]
    asked = ours.llm.training
    with rc.replay(path=tmp_path / "c"):
        again = [ours.manager.generate_sequences(ours.prompts(step, run="b")) for step in (1, 2)]
    assert ours.llm.training == asked == 16
    for left, right in zip(live, again, strict=True):
        assert_equal(left, right)
        assert list(left.non_tensor_batch) == list(right.non_tensor_batch)


def test_its_trajectories_are_those_of_the_manager(rollouts, tmp_path):
    """Without padding, with the columns that were echoed, and each reward where verl put it."""
    ours = rollouts()
    prompts = ours.prompts(1)
    with rc.record(path=tmp_path / "c"):
        live = ours.manager.generate_sequences(prompts)
    rows = rc.open_cassette(tmp_path / "c")[1].trajectories
    assert len(rows) == len(live) == 8
    for number, row in enumerate(rows):
        attended = live.batch["attention_mask"][number].bool()
        recorded = row.prompt_ids.tolist() + row.response_ids.tolist()
        assert recorded == live.batch["input_ids"][number][attended].tolist()
        assert row.score == live.batch["rm_scores"][number].sum().item()
        assert row.prompt == prompts.non_tensor_batch["raw_prompt"][number]
        assert (row.group, row.session) == divmod(number, 2)


def test_it_replays_from_a_running_loop(rollouts, tmp_path):
    """Awaited, as the one-step-off trainer calls it, and called without `await`."""
    ours = rollouts()

    async def awaited(step):
        return await ours.manager.generate_sequences(ours.prompts(step))

    with rc.record(path=tmp_path / "c"):
        live = asyncio.run(awaited(1))
    with rc.replay(path=tmp_path / "c"):
        assert_equal(live, asyncio.run(awaited(1)))
    with rc.replay(path=tmp_path / "c"):
        assert_equal(live, ours.manager.generate_sequences(ours.prompts(1)))
    assert ours.llm.training == 8


def test_echoed_columns_come_from_the_live_request(rollouts, tmp_path):
    """They are not stored twice, and `union` with the trainer's batch works, `uid` included."""
    ours = rollouts(late_rewards=True)
    with rc.record(path=tmp_path / "c"):
        live = ours.manager.generate_sequences(ours.prompts(1))
    response = rc.open_cassette(tmp_path / "c")[1].response
    assert "uid" in response["echoed"]
    assert "uid" not in response["output"].non_tensor_batch
    batch = ours.prompts(1, run="another")
    with rc.replay(path=tmp_path / "c"):
        again = ours.manager.generate_sequences(ours.prompts(1, run="another"))
    united = batch.union(again)
    assert list(united.non_tensor_batch["uid"]) == list(batch.non_tensor_batch["uid"])
    assert digest(live.batch) == digest(again.batch)


def test_the_prompts_are_left_as_the_live_call_leaves_them(rollouts, tmp_path):
    """Verl 0.9 adds a priority to the request that it is given; 0.8 adds nothing."""
    ours = rollouts()
    asked, prompts = ours.prompts(1), ours.prompts(1)
    with rc.record(path=tmp_path / "c"):
        ours.manager.generate_sequences(asked)
    with rc.replay(path=tmp_path / "c"):
        ours.manager.generate_sequences(prompts)
    assert list(prompts.non_tensor_batch) == list(asked.non_tensor_batch)
    if not version("verl").startswith("0.8"):
        assert prompts.non_tensor_batch["priority"].tolist() == list(range(8))


def test_validation_stays_live(rollouts, tmp_path):
    """`meta_info["validate"]` is neither recorded nor replayed."""
    ours = rollouts()
    with rc.record(path=tmp_path / "c") as session:
        ours.manager.generate_sequences(ours.prompts(1, validate=True))
        ours.manager.generate_sequences(ours.prompts(1))
    assert session.recorded == [1]
    assert len(rc.open_cassette(tmp_path / "c").interactions()) == 1
    asked = ours.llm.validation
    with rc.replay(path=tmp_path / "c"):
        ours.manager.generate_sequences(ours.prompts(1, validate=True))
    assert ours.llm.validation == 2 * asked > 0


def test_validation_is_recorded_and_replayed_if_asked_for(rollouts, tmp_path):
    """Each batch of a validation, under the phase "val" of its step."""
    ours = rollouts()

    def validate():
        batches = [ours.prompts(step, n=1, validate=True) for step in (4, 5)]
        for batch in batches:
            batch.meta_info["global_steps"] = 3
        return [ours.manager.generate_sequences(batch) for batch in batches]

    with rc.record(path=tmp_path / "c", phases=("train", "val")):
        live = validate()
    keys = rc.open_cassette(tmp_path / "c").keys
    assert [(key.step, key.phase, key.index) for key in keys] == [(3, "val", 0), (3, "val", 1)]
    asked = ours.llm.validation
    with rc.replay(path=tmp_path / "c", phases=("train", "val")):
        again = validate()
    assert ours.llm.validation == asked > 0
    for left, right in zip(live, again, strict=True):
        assert_equal(left, right)


def test_changed_prompts_are_a_mismatch(rollouts, tmp_path):
    """Named by row and field."""
    ours = rollouts()
    with rc.record(path=tmp_path / "c"):
        ours.manager.generate_sequences(ours.prompts(1))
    prompts = ours.prompts(1)
    prompts.non_tensor_batch["data_source"][3] = "another"
    with rc.replay(path=tmp_path / "c"), pytest.raises(rc.RequestMismatchError) as caught:
        ours.manager.generate_sequences(prompts)
    assert (caught.value.row, caught.value.field) == (3, "data_source")


@pytest.mark.parametrize("count", [2, 4, 6])
def test_repeat_fits_the_live_batch(rollouts, tmp_path, count):
    """Whole groups, cycled or left out; each live row keeps its own uid."""
    ours = rollouts(late_rewards=True)
    with rc.record(path=tmp_path / "c"):
        live = ours.manager.generate_sequences(ours.prompts(1))
    prompts = ours.prompts(7, count=count)
    with rc.replay(mode="repeat", path=tmp_path / "c"):
        again = ours.manager.generate_sequences(prompts)
    rows = [row % 8 for row in range(2 * count)]
    assert np.array_equal(again.batch["responses"], live.batch["responses"][rows])
    assert list(again.non_tensor_batch["uid"]) == list(prompts.non_tensor_batch["uid"])


def test_a_manager_of_your_own_is_recorded_once(rollouts, tmp_path):
    """An override that calls `super()`, and one that does without."""
    from verl.experimental.agent_loop import AgentLoopManager

    class Wrapping(AgentLoopManager):
        async def generate_sequences(self, prompts):
            output = await super().generate_sequences(prompts)
            output.meta_info["mine"] = True
            return output

    ours = rollouts(Wrapping)
    with rc.record(path=tmp_path / "c"):
        live = asyncio.run(ours.manager.generate_sequences(ours.prompts(1)))
    assert len(rc.open_cassette(tmp_path / "c").interactions()) == 1
    with rc.replay(path=tmp_path / "c"):
        again = asyncio.run(ours.manager.generate_sequences(ours.prompts(1)))
    assert again.meta_info["mine"]
    assert_equal(live, again)


# ---- fully asynchronous


@pytest.fixture
def fed(rollouts):
    """`LocalRollouts` of verl's fully asynchronous manager."""
    from verl.experimental.fully_async_policy.fully_async_rollouter import (
        FullyAsyncAgentLoopManager,
    )

    return rollouts(FullyAsyncAgentLoopManager)


async def run_all(ours, indices):
    """Ask for all of them at once; they are finished in any order."""
    return await asyncio.gather(
        *(ours.manager.generate_sequences_single(ours.fed(index)) for index in indices)
    )


def test_hundreds_in_flight_come_back_under_their_feed_index(fed, tmp_path):
    """Whatever the order in which they are finished."""
    ours, indices = fed, range(1, 201)
    with rc.record(path=tmp_path / "c") as session:
        live = asyncio.run(run_all(ours, indices))
    assert session.recorded == list(indices)
    assert rc.open_cassette(tmp_path / "c")[7].manifest.step_kind == "feed index"
    asked = ours.llm.training
    with rc.replay(path=tmp_path / "c"):
        again = asyncio.run(run_all(ours, reversed(indices)))
    assert ours.llm.training == asked
    for left, right in zip(live, reversed(again), strict=True):
        assert_equal(left, right)


def test_the_feed_index_goes_on_over_epochs(fed, tmp_path):
    """`uid_sample_1_9` is step 9."""
    ours = fed
    with rc.record(path=tmp_path / "c") as session:
        asyncio.run(ours.manager.generate_sequences_single(ours.fed(9, epoch=1)))
    assert session.recorded == [9]
