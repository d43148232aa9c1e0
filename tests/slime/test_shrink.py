"""Cassettes of slime's and miles', shrunk: they replay what is asked for again."""

from __future__ import annotations

import random

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters.slime import generate_rollout
from tests.slime import rollouts
from tests.slime.rollouts import Prompts, arguments, plain

pytestmark = pytest.mark.usefixtures("framework")


class Chosen(Prompts):
    """A source with just these prompts."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers = list(numbers)

    def _fresh(self):
        start, self.offset = self.offset, self.numbers.pop(0)
        group = super()._fresh()
        self.offset = start + 1
        return group


def recorded(path, function, steps=(0, 1), evaluate=False):
    """Record rollouts of three prompts each; return what they gave."""
    args = arguments(cassettes={"rollout_function": f"{rollouts.__name__}.{function}"})
    source, live = Prompts(), []
    with rc.record(path=path, phases=("train", "val")):
        for step in steps:
            live.append(generate_rollout(args, step, source))
            if evaluate:
                live.append(generate_rollout(args, step, source, evaluation=True))
    return live


def replayed(path, numbers, steps=(0, 1)):
    """Replay a small cassette, with these prompts."""
    args, source = arguments(), Chosen(numbers)
    rollouts.calls.clear()
    with rc.replay(path=path, on_unplayed="error"):
        outputs = [generate_rollout(args, step, source) for step in steps]
    assert rollouts.calls == source.numbers == []
    return outputs


def test_a_list_of_groups(path, tmp_path):
    """Cache mode: the first prompt of each step, with its two samples."""
    live = recorded(path, "legacy")
    shrunk = rc.shrink(path, tmp_path / "small", rows=3)
    assert (shrunk.steps, shrunk.rows, shrunk.rows_before) == ([0, 1], 4, 12)
    again = replayed(tmp_path / "small", [0, 3])
    assert plain(again) == plain([groups[:1] for groups in live])


def test_more_was_drawn_than_returned(path, tmp_path):
    """Filtered groups go, those of earlier draws too; the kept ones are the first of the rest."""
    live = recorded(path, "filtered")
    shrunk = rc.shrink(path, tmp_path / "small", rows=2)
    assert (shrunk.rows, shrunk.rows_before) == (4, 12)
    (first, second) = [output.samples[0][0].group_index for output in live]
    assert (first, second) == (1, 7)
    again = replayed(tmp_path / "small", [first, second])
    assert plain([output.samples for output in again]) == plain(
        [output.samples[:1] for output in live]
    )
    assert again[0].metrics == live[0].metrics
    rows = rc.open_cassette(tmp_path / "small")[0].trajectories
    assert [row.prompt for row in rows] == ["prompt 1", "prompt 1"]


def test_the_order_of_the_output_stays(path, tmp_path):
    """Groups may come back in another order than they were drawn in."""
    live = recorded(path, "backwards", [0])
    rc.shrink(path, tmp_path / "small", rows=4)
    (again,) = replayed(tmp_path / "small", [0, 1], [0])
    assert plain(again) == plain(live[0][1:])
    assert [group[0].prompt for group in again] == ["prompt 1", "prompt 0"]


def test_it_is_repeated_for_any_number_of_prompts(path, tmp_path):
    live = recorded(path, "legacy")
    rc.shrink(path, tmp_path / "small", rows=4, steps=[0])
    with rc.replay(path=tmp_path / "small", mode="repeat"):
        groups = generate_rollout(arguments(), 8, Prompts(50))
    assert [group[0].response for group in groups] == [live[0][at][0].response for at in (0, 1, 0)]


def test_evaluations_stay_whole(path, tmp_path):
    """They draw nothing that could be cut."""
    _, live, *_ = recorded(path, "filtered", evaluate=True)
    rc.shrink(path, tmp_path / "small", rows=2)
    with rc.replay(path=tmp_path / "small", phases="val"):
        again = generate_rollout(arguments(), 0, Prompts(), evaluation=True)
    assert plain(again) == plain(live)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("generate_rollout", "put samples back that a later step goes on with"),
        ("invented", "did not draw the prompt of group 0"),
    ],
)
def test_what_belongs_to_no_prompt_is_refused(path, tmp_path, function, why):
    """It is cut into steps all the same, and these replay."""
    live = recorded(path, function)
    with pytest.raises(rc.CassetteError, match=why) as caught:
        rc.shrink(path, tmp_path / "small", rows=2)
    assert "steps" in str(caught.value)
    rc.shrink(path, tmp_path / "small", steps=[0])
    with rc.replay(path=tmp_path / "small"):
        assert plain(generate_rollout(arguments(), 0, Prompts())) == plain(live[0])


@pytest.mark.parametrize(("step", "why"), [(0, "a later step"), (1, "an earlier step")])
def test_a_step_that_goes_on_with_earlier_samples_is_refused(path, tmp_path, step, why):
    recorded(path, "resuming")
    with pytest.raises(rc.CassetteError, match=why):
        rc.shrink(path, tmp_path / "small", rows=2, steps=[step])


def test_samples_have_no_fields_to_choose_from(path, tmp_path):
    recorded(path, "legacy", [0])
    with pytest.raises(rc.CassetteError, match="no named fields"):
        rc.shrink(path, tmp_path / "small", fields=["tokens"])


@pytest.fixture(autouse=True)
def seeded():
    random.seed(2)
