"""Interactions in two halves: what is submitted, and what is sampled later."""

from __future__ import annotations

import importlib

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import Adapter, EntryPoint, Exchange, Place, Role

TRAINER = """
    class Trainer:
        def __init__(self):
            self.step, self.queue, self.generated = 1, [], 0

        def submit(self, prompts):
            self.queue += prompts
            prompts.append("changed by the trainer")
            return len(prompts) - 1

        def sample(self):
            self.generated += len(self.queue)
            answers = [f"{prompt}!" for prompt in self.queue]
            self.queue = []
            return answers
"""


class Queue(Adapter):
    """Prompts are submitted in one or more batches, and sampled all at once."""

    name = "queue"
    step_kind = "trainer step"

    def __init__(self, module):
        self.entry_points = tuple(
            EntryPoint(self.name, module.__name__, f"Trainer.{role.value}", role=role)
            for role in (Role.SUBMIT, Role.SAMPLE)
        )

    def place(self, call):
        return Place(call.args[0].step)

    def request(self, call):
        return list(call.args[1])

    def withhold(self, call, recorded, submitted):
        return len(call.args[1])

    def capture(self, call, result, submitted):
        return {"answers": result, "submitted": [list(each) for each in submitted]}

    def restore(self, call, recorded, submitted, shift):
        assert isinstance(recorded, Exchange)
        return recorded.response["answers"]

    def rows(self, request):
        return [{"prompt": prompt} for batch in request for prompt in batch]


@pytest.fixture
def trainer(write_module):
    return importlib.import_module(write_module(TRAINER)).Trainer()


@pytest.fixture
def queue(trainer):
    return Queue(importlib.import_module(type(trainer).__module__))


def step(trainer, *batches):
    """Submit batches and sample their answers, as one step."""
    counts = [trainer.submit(list(batch)) for batch in batches]
    answers = trainer.sample()
    trainer.step += 1
    return counts, answers


def move_on(trainer, _submitted):
    trainer.step += 1
    return trainer


def test_both_halves_are_one_interaction(trainer, queue, path):
    with rc.record(path=path, adapters=queue) as session:
        step(trainer, ["a", "b"], ["c"])
    (interaction,) = rc.open_cassette(path).interactions()
    assert session.recorded == [1]
    assert interaction.request == [["a", "b"], ["c"]]
    assert interaction.response["answers"] == ["a!", "b!", "c!"]
    assert interaction.manifest.entry_point.endswith("Trainer.sample")
    assert len(interaction.manifest.fingerprint) == 3


def test_a_replay_withholds_what_is_submitted(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        live = [step(trainer, ["a", "b"], ["c"]), step(trainer, ["d"])]
    trainer.step, trainer.generated = 1, 0
    with rc.replay(path=path, adapters=queue, on_unplayed="error") as session:
        assert [step(trainer, ["a", "b"], ["c"]), step(trainer, ["d"])] == live
    assert (trainer.generated, trainer.queue) == (0, [])
    assert session.played == [1, 2]


def test_a_changed_prompt_is_refused_when_it_is_submitted(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"], ["b"])
    trainer.step = 1
    with rc.replay(path=path, adapters=queue):
        trainer.submit(["a"])
        with pytest.raises(rc.RequestMismatchError) as caught:
            trainer.submit(["changed"])
        assert (caught.value.row, caught.value.recorded, caught.value.live) == (1, "b", "changed")
        trainer.submit(["b"])
        assert trainer.sample() == ["a!", "b!"]


def test_too_few_prompts_are_refused_when_they_are_sampled(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"], ["b"])
    trainer.step = 1
    with (
        pytest.raises(rc.RequestMismatchError, match="had 2 rows, and has 1 now"),
        rc.replay(path=path, adapters=queue),
    ):
        step(trainer, ["a"])


def test_too_many_prompts_are_refused_when_they_are_submitted(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    trainer.step = 1
    with (
        pytest.raises(rc.RequestMismatchError, match="had 1 row, and has 2 now"),
        rc.replay(path=path, adapters=queue),
    ):
        step(trainer, ["a"], ["b"])


def test_a_mismatch_is_warned_of_once(trainer, queue, path, caplog):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    trainer.step = 1
    with rc.replay(path=path, adapters=queue, on_mismatch="warn"):
        assert step(trainer, ["b"]) == ([1], ["a!"])
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("on_miss", ["generate", "record"])
def test_a_step_that_is_missing_goes_live_in_both_halves(trainer, queue, path, on_miss):
    with rc.record(1, path=path, adapters=queue):
        live = [step(trainer, ["a"]), step(trainer, ["b"])]
    trainer.step, trainer.generated = 1, 0
    with rc.replay(path=path, adapters=queue, on_miss=on_miss) as session:
        assert [step(trainer, ["a"]), step(trainer, ["b"])] == live
    assert trainer.generated == 1
    assert session.played == [1]
    assert (session.generated, session.recorded) == (
        ([2], []) if on_miss == "generate" else ([], [2])
    )
    assert 2 in rc.open_cassette(path) if on_miss == "record" else True


def test_a_step_that_is_missing_is_refused_when_it_is_submitted(trainer, queue, path):
    with rc.record(1, path=path, adapters=queue):
        step(trainer, ["a"])
    with pytest.raises(rc.StepNotRecordedError), rc.replay(path=path, adapters=queue):
        trainer.submit(["b"])
    assert trainer.queue == []


def test_a_sample_is_not_made_live_for_prompts_that_were_withheld(trainer, queue, path):
    """Nobody works on them: a live sample would wait for ever."""
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    trainer.step = 1
    with (
        pytest.raises(rc.StepNotRecordedError),
        rc.replay(path=path, adapters=queue, on_miss="generate"),
    ):
        move_on(trainer, trainer.submit(["a"])).sample()


@pytest.mark.parametrize("on_miss", ["generate", "record"])
def test_a_further_sample_of_a_step_is_not_made_live(trainer, queue, path, on_miss):
    """What it would wait for was withheld for the sample that was recorded."""
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    trainer.step, trainer.generated = 1, 0
    with rc.replay(path=path, adapters=queue, on_miss=on_miss):
        trainer.submit(["a"])
        trainer.sample()
        with pytest.raises(rc.StepNotRecordedError, match="can't be generated") as caught:
            trainer.sample()
        assert "on_miss='record'" not in str(caught.value)
        trainer.step = 2
        assert step(trainer, ["b"]) == ([1], ["b!"])


def test_repeat_compares_nothing_and_gives_the_nearest_step(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    with rc.replay(path=path, adapters=queue, mode="repeat") as session:
        assert step(trainer, ["other", "prompts"]) == ([2], ["a!"])
    assert session.played == [2]


def test_skipped_steps_go_live_in_both_halves(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        step(trainer, ["a"])
    trainer.step = 1
    with rc.record(path=path, adapters=queue, on_existing="skip") as session:
        step(trainer, ["b"])
        step(trainer, ["c"])
    assert session.recorded == [2]
    assert [each.request for each in rc.open_cassette(path)] == [[["a"]], [["c"]]]


def test_a_submit_that_failed_is_no_part_of_what_is_sampled(trainer, queue, path):
    with rc.record(path=path, adapters=queue):
        with pytest.raises(AttributeError):
            trainer.submit(("a", "tuple"))
        step(trainer, ["b"])
    assert rc.open_cassette(path)[1].request == [["b"]]


def test_without_one_of_its_requests_a_sample_is_not_recorded(
    trainer, queue, path, monkeypatch, caplog
):
    """And the next step is recorded with its own requests alone."""
    request = queue.request

    def fail(call):
        if call.args[1] == ["b"]:
            raise ZeroDivisionError("from the adapter")
        return request(call)

    monkeypatch.setattr(queue, "request", fail)
    with rc.record(path=path, adapters=queue) as session:
        assert step(trainer, ["a"], ["b"])[1] == ["a!", "b!"]
        step(trainer, ["c"])
    assert session.recorded == [2]
    assert session.summary().faults == {"step 1": "ZeroDivisionError: from the adapter"}
    assert rc.open_cassette(path)[2].request == [["c"]]
