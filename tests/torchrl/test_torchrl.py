"""torchrl's own collectors, recorded and replayed."""

from __future__ import annotations

import pytest
import torch

import rollout_cassettes as rc
from tests.cassette.sameness import assert_same
from tests.session.engines import warnings_of
from tests.torchrl.training import LLMCollector, RayLLMCollector, one_thread

DIALOGS = {"turns": 2, "yield_completed_trajectories": True, "updates": False}
LAST_TURNS = {"turns": 2, "yield_only_last_steps": True, "updates": False}


@pytest.fixture
def cassette(tmp_path):
    return tmp_path / "cassette"


@pytest.fixture
def both(train_torchrl, cassette):
    """Train with a recording session, and again with a replaying one: `both(**options) -> runs`."""

    def run(**options):
        live = train_torchrl(rc.record(path=cassette), **options)
        return live, train_torchrl(rc.replay(path=cassette, on_unplayed="error"), **options)

    return run


def assert_equal(again, live):
    """Assert that two runs are the same, to the bit and to the type of every container."""
    assert again.is_equal(live)
    assert_same(again.batches, live.batches)
    assert_same(again.collector._shuttle, live.collector._shuttle)
    assert again.collector._frames == live.collector._frames


def calls(run):
    """Return how often the environment was stepped."""
    return run.collector.env.transform[1].calls


# ---- replays


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="history"),
        pytest.param({"mode": "text"}, id="text"),
        pytest.param({"padded": True, "updates": False}, id="padded"),
        pytest.param({"flatten_data": True}, id="flattened"),
        pytest.param({"reset_at_each_iter": True}, id="reset"),
        pytest.param({"turns": 2, "dialog_turns_per_batch": 12, "updates": False}, id="mid-dialog"),
        pytest.param({"track_policy_version": True}, id="policy version"),
        pytest.param(DIALOGS, id="completed trajectories"),
        pytest.param(LAST_TURNS, id="last steps"),
    ],
)
def test_a_replay_is_equal_to_the_bit(both, options):
    """Batches with the types of all their containers, losses and parameters; nothing is called."""
    live, again = both(**options)
    assert_equal(again, live)
    assert live.generations > again.generations == 0
    assert calls(live) > calls(again) == 0
    assert again.session.played == list(range(len(live.batches)))


def test_a_replay_fills_the_replay_buffer(both):
    """The collector writes into it and yields None, as in the recorded run."""
    live, again = both(buffered=True)
    assert live.batches == [None] * 3
    assert_equal(again, live)
    assert_same(again.buffer[:], live.buffer[:])
    assert again.generations == 0


def test_a_collector_with_a_thread_of_its_own_fills_the_replay_buffer(train_torchrl, cassette):
    """What `start` makes is recorded and replayed too."""
    buffers = []
    for session in (rc.record(path=cassette), rc.replay(path=cassette, on_unplayed="error")):
        with one_thread(), session:
            buffer = train_torchrl.make_buffer()
            collector = train_torchrl.make(replay_buffer=buffer)
            collector.start()
            collector._thread.join()
        buffers.append(buffer[:])
    assert collector.policy.model.generations == 0
    assert_same(*buffers)


def test_a_run_without_a_session_is_the_recorded_one(train_torchrl, cassette):
    """Recording changes nothing."""
    assert_equal(train_torchrl(), train_torchrl(rc.record(path=cassette)))


@pytest.mark.parametrize("options", [{}, {"reset_at_each_iter": True}, DIALOGS, LAST_TURNS])
def test_a_batch_that_goes_live_after_replayed_ones_is_as_in_a_live_run(
    train_torchrl, cassette, options
):
    """The data loader, the dialogs under way and the random generators are where they were."""
    live = train_torchrl(rc.record(path=cassette), **options)
    again = train_torchrl(rc.replay(path=cassette, steps=[0]), **options)
    assert_equal(again, live)
    assert again.session.played == [0]
    assert live.generations > again.generations > 0


def test_people_see_the_turns(train_torchrl, cassette):
    """As trajectories of text, tokens, log-probs and rewards, in the order of the batch's turns."""
    live = train_torchrl(rc.record(path=cassette), updates=False)
    turns = [turn for each in live.batches[0].unbind(-1) for turn in each.unbind(0)]
    found = rc.open_cassette(cassette)[0].trajectories
    assert [row.response for row in found] == [turn["text"].response for turn in turns]
    assert [row.prompt[0]["content"] for row in found] == [turn["query"] for turn in turns]
    assert [row.score for row in found] == [float(turn["next", "reward"]) for turn in turns]
    for row, turn in zip(found, turns, strict=True):
        assert row.response_ids.tolist() == turn["tokens"].response.tolist()
        assert row.log_probs.tolist() == turn["log_probs"].response.tolist()
    assert [row.session for row in found] == [0, 1, 0, 1] * 2


# ---- prompts


def test_a_changed_prompt_is_a_mismatch(train_torchrl, cassette):
    """Of the first turn, before anything is replayed."""
    live = train_torchrl(rc.record(path=cassette))
    with pytest.raises(rc.RequestMismatchError, match=r"row 0, field 'answer' was") as caught:
        train_torchrl(rc.replay(path=cassette), questions=changed(live.batches[0][0, 0]))
    assert caught.value.step == 0


def test_a_prompt_that_changed_within_a_batch_is_a_mismatch(train_torchrl, cassette):
    """A batch may have several turns; prompts that are drawn after the first are compared too."""
    live = train_torchrl(rc.record(path=cassette))
    questions = changed(live.batches[0][2, 1])
    with pytest.raises(rc.RequestMismatchError, match=r"row 2, field 'answer' was") as caught:
        train_torchrl(rc.replay(path=cassette), questions=questions)
    assert caught.value.step == 0


def test_a_warning_will_do_if_so_asked(train_torchrl, cassette, caplog):
    live = train_torchrl(rc.record(path=cassette))
    questions = changed(live.batches[0][2, 1])
    session = rc.replay(path=cassette, on_mismatch="warn")
    again = train_torchrl(session, questions=questions)
    assert again.is_equal(live)
    assert "row 2, field 'answer'" in warnings_of(caplog)[0]


def test_dialogs_of_other_prompts_are_a_mismatch(train_torchrl, cassette):
    """Where completed trajectories are yielded, whenever they were begun."""
    live = train_torchrl(rc.record(path=cassette), **DIALOGS)
    questions = changed(live.batches[-1][0])
    with pytest.raises(rc.RequestMismatchError, match="field 'answer' was"):
        train_torchrl(rc.replay(path=cassette), **DIALOGS, questions=questions)


def changed(turn):
    """Return questions of which the one that was asked for a turn is another."""
    asked = (int(turn["answer"]) - 1) // 2
    return [77 if n == asked else n for n in range(16)]


# ---- repeat mode


@pytest.mark.parametrize("flat", [False, True])
def test_a_batch_is_fitted_to_more_environments_and_fewer_turns(train_torchrl, cassette, flat):
    """Recorded dialogs are gone through again; the last turns are left out."""
    options = {"flatten_data": flat, "updates": False}
    live = train_torchrl(rc.record(path=cassette), **options)
    session = rc.replay(path=cassette, mode="repeat")
    again = train_torchrl(
        session, **options, slots=6, dialog_turns_per_batch=6, total_dialog_turns=36
    )
    assert len(again.batches) == 6
    assert again.generations == 0
    was, now = live.batches[0].reshape(4, 2), again.batches[0].reshape(6, 1)
    for slot in range(6):
        assert_same(now[slot, 0], was[slot % 4, 0])


def test_repeat_mode_goes_on_after_the_last_batch(train_torchrl, cassette):
    live = train_torchrl(rc.record(path=cassette))
    again = train_torchrl(rc.replay(path=cassette, mode="repeat"), total_dialog_turns=48)
    assert again.generations == 0
    assert_same(again.batches[5], live.batches[2])


# ---- collectors of one's own, and others


class LoudLLMCollector(LLMCollector):
    def _rollout_all(self):
        self.shouts = getattr(self, "shouts", 0) + 1
        batch = super()._rollout_all()
        batch["loud"] = torch.ones(batch.batch_size)
        return batch


class PickyLLMCollector(LLMCollector):
    def _rollout_all(self):
        return super()._rollout_all()[:-1]


def test_a_method_of_a_subclass_is_recorded_with_what_it_does(both, cassette):
    """It is not called in a replay."""
    live, again = both(collector=LoudLLMCollector)
    assert again.is_equal(live)
    assert_same(again.batches, live.batches)
    assert live.collector.shouts == 3
    assert not hasattr(again.collector, "shouts")
    assert rc.open_cassette(cassette)[0].response["output"]["loud"].sum() == 8


def test_a_method_that_leaves_turns_out_can_not_be_recorded(train_torchrl, cassette, caplog):
    """A replay could not tell which prompts to draw. The run goes on."""
    live = train_torchrl(rc.record(path=cassette), collector=PickyLLMCollector, updates=False)
    assert len(live.batches) == 4
    assert "returned 6 dialog turns, where 2 of each of 4" in warnings_of(caplog)[0]
    assert rc.open_cassette(cassette).keys == []


def test_two_collectors_share_a_step(train_torchrl, cassette):
    """They are told apart by their prompts, whichever is asked first."""
    batches = []
    for session, order in ((rc.record(path=cassette), 1), (rc.replay(path=cassette), -1)):
        with one_thread(), session:
            makers = [range(16), range(16, 32)][::order]
            found = [next(iter(train_torchrl.make(questions=each))) for each in makers]
        batches.append(found[::order])
    assert_same(*batches)
    assert rc.open_cassette(cassette).keys == [rc.Key(0), rc.Key(0, index=1)]


@pytest.mark.parametrize("method", ["__iter__", "next", "start"])
def test_a_collector_in_an_actor_is_refused(cassette, method):
    """Before it is asked for anything; this one has no actor to ask."""
    remote = object.__new__(RayLLMCollector)
    with pytest.raises(rc.CassetteError, match="in a Ray actor"):  # noqa: SIM117
        with rc.record(path=cassette):
            getattr(remote, method)()
