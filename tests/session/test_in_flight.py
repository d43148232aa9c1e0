"""Requests that are in flight: sampled later, refilled, polled, handed out again, released."""

from __future__ import annotations

import importlib

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import Adapter, EntryPoint, Place, Role

TRAINER = """
    class Trainer:
        '''Samples two answers a step, of prompts that were submitted in any step before.'''

        def __init__(self):
            self.step, self.queue, self.asked, self.next = 1, [], [], 0

        def submit(self, prompts):
            self.queue += prompts
            self.asked += prompts
            return len(prompts)

        def draw(self, count):
            prompts = [f"p{number}" for number in range(self.next, self.next + count)]
            self.next += count
            return self.submit(prompts)

        def resubmit(self):
            self.asked += self.queue
            return len(self.queue)

        def done(self):
            return len(self.queue)

        def sample(self):
            while any(prompt in ("p1", "p4") for prompt in self.queue[:2]):
                self.queue = [p for p in self.queue if p not in ("p1", "p4")]
                self.draw(1)
            answers, self.queue = [f"{p}!" for p in self.queue[:2]], self.queue[2:]
            return answers

        def train(self, steps, ahead=2):
            self.draw(ahead)
            seen = []
            for _ in range(steps):
                self.draw(2)
                seen.append((self.done(), self.sample()))
                self.step += 1
            return seen
"""


class InFlight(Adapter):
    """Keeps nothing: what is in flight is in the trainer's own queue."""

    name = "in_flight"
    step_kind = "trainer step"

    def __init__(self, module):
        roles = {"submit": Role.SUBMIT, "resubmit": Role.RESUBMIT, "sample": Role.SAMPLE}
        roles["done"] = Role.POLL
        self.entry_points = tuple(
            EntryPoint(self.name, module.__name__, f"Trainer.{method}", role=role)
            for method, role in roles.items()
        )
        self.paired = []

    def place(self, call):
        return Place(call.args[0].step)

    def request(self, call):
        return list(call.args[1])

    def withhold(self, call, recorded, submitted):
        if call.point.role is Role.RESUBMIT:
            return 0
        self.paired.append((recorded, submitted))
        call.args[0].queue += submitted[-1]
        return len(submitted[-1])

    def refill(self, call, recorded):
        for prompts in recorded:
            call.args[0].draw(len(prompts))

    def release(self, call):
        call.args[0].asked += call.args[0].queue

    def poll(self, call):
        return -1

    def capture(self, call, result, submitted):
        return {"left": list(call.args[0].queue), "answers": result}

    def restore(self, call, recorded, submitted, shift):
        if call.point.role is Role.SAMPLE:
            call.args[0].queue = list(recorded.response["left"])
        return recorded.response["answers"]

    def rows(self, request):
        return [{"prompt": prompt} for batch in request for prompt in batch]


@pytest.fixture
def make(write_module):
    return importlib.import_module(write_module(TRAINER)).Trainer


@pytest.fixture
def adapter(make):
    return InFlight(importlib.import_module(make.__module__))


@pytest.fixture
def live(make, adapter, path):
    """A run of three steps, and what it saw."""
    with rc.record(path=path, adapters=adapter):
        trainer = make()
        trainer.seen = trainer.train(3)
    return trainer


def test_requests_belong_to_the_sample_that_follows_them(live, path):
    """Prefetched, and drawn while sampling, they stand in the order in which they were submitted."""
    cassette = rc.open_cassette(path)
    requests = [interaction.request for interaction in cassette]
    assert requests == [
        [["p0", "p1"], ["p2", "p3"], ["p4"]],
        [["p5", "p6"], ["p7"]],
        [["p8", "p9"]],
    ]
    assert [interaction.response["answers"] for interaction in cassette] == [
        ["p0!", "p2!"],
        ["p3!", "p5!"],
        ["p6!", "p7!"],
    ]
    assert [interaction.polls for interaction in cassette] == [
        [{"left": ["p0", "p1", "p2", "p3"], "answers": 4}],
        [{"left": ["p3", "p4", "p5", "p6"], "answers": 4}],
        [{"left": ["p6", "p7", "p8", "p9"], "answers": 4}],
    ]


def test_a_replay_draws_what_the_live_run_drew(make, adapter, live, path):
    """Refills too, and nothing is asked for."""
    with rc.replay(path=path, adapters=adapter, on_unplayed="error"):
        again = make()
        assert again.train(3) == live.seen
    assert again.asked == []
    assert (again.next, again.queue) == (live.next, live.queue)


def test_the_adapter_gets_what_was_recorded_beside_what_is_submitted(make, adapter, live, path):
    """So that it can tell which prompt is which, also of a refill."""
    with rc.replay(path=path, adapters=adapter):
        make().train(1)
    recorded = [["p0", "p1"], ["p2", "p3"], ["p4"]]
    assert adapter.paired == [(recorded, recorded[: count + 1]) for count in range(3)]


def test_what_is_in_flight_goes_out_before_a_live_submit(make, adapter, live, path):
    """Once, at the first step that is not replayed."""
    with rc.replay("1-2", path=path, adapters=adapter):
        again = make()
        assert again.train(4)[2:] == [(4, ["p6!", "p7!"]), (4, ["p8!", "p9!"])]
    assert again.asked == ["p6", "p7", "p8", "p9", "p10", "p11"]


@pytest.mark.parametrize("on_miss", ["generate", "record"])
def test_what_is_in_flight_goes_out_at_a_miss(make, adapter, live, path, on_miss):
    """As before a step that is not selected."""
    with rc.replay(path=path, adapters=adapter, on_miss=on_miss):
        again = make()
        again.train(4)
    assert again.asked == ["p8", "p9", "p10", "p11"]
    assert (4 in rc.open_cassette(path)) is (on_miss == "record")


def test_what_an_earlier_run_submitted_is_not_handed_out_again(make, adapter, live, path):
    """A run that goes on at step 2; where it isn't recorded, it is."""
    again = make()
    again.step, again.queue = 2, ["p3", "p4"]
    with rc.replay(path=path, adapters=adapter):
        assert again.resubmit() == 0
    assert again.asked == []
    with rc.replay(1, path=path, adapters=adapter):
        assert again.resubmit() == 2
    again.step = 4
    with rc.replay(path=path, adapters=adapter, on_miss="generate"):
        assert again.resubmit() == 2
    with rc.replay(path=path, adapters=adapter), pytest.raises(rc.StepNotRecordedError):
        again.resubmit()
    with rc.record(4, path=path, adapters=adapter):
        assert again.resubmit() == 2


def test_a_poll_that_the_recorded_run_did_not_make_is_the_adapters(make, adapter, live, path):
    """How often a framework asks may depend on the clock."""
    with rc.replay(path=path, adapters=adapter):
        again = make()
        again.draw(2)
        assert [again.done(), again.done()] == [4, -1]
    with rc.replay(path=path, mode="repeat", adapters=adapter):
        assert make().done() == -1
    with rc.replay(path=path, adapters=adapter):
        again = make()
        again.step = 4
        assert again.done() == 0  # nothing of the step is recorded: the framework tells


def test_polls_of_a_step_that_is_kept_are_not_recorded(make, adapter, live, path):
    """`on_existing="skip"` leaves what is there as it is."""
    before = rc.open_cassette(path)[2].path.read_bytes()
    with rc.record(path=path, adapters=adapter, on_existing="skip") as session:
        make().train(4)
    assert session.recorded == [4]
    assert rc.open_cassette(path)[2].path.read_bytes() == before


@pytest.mark.parametrize("name", ["withhold", "poll"])
def test_an_adapter_without_such_parts_says_so(adapter, name):
    arguments = {"withhold": (None, (), ()), "poll": (None,)}[name]
    with pytest.raises(NotImplementedError, match="in_flight"):
        getattr(Adapter, name)(adapter, *arguments)
