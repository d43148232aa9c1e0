"""Random generators: which ones a call advanced, and putting them there again."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.session.random_state import Generators, RandomState, Span, restore

DRAWS = {
    "python": random.random,
    "numpy": np.random.rand,
    "torch": lambda: torch.rand(()).item(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_generator_that_moved_is_found_and_put_back(name):
    before = RandomState.now()
    DRAWS[name]()
    advanced = RandomState.now().advanced_since(before)
    assert list(advanced) == [name]
    expected = DRAWS[name]()
    restore(name, advanced[name])
    assert DRAWS[name]() == expected


def test_numpys_global_generator_may_be_of_another_kind():
    usual = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(0))
    try:
        before = RandomState.now()
        np.random.rand()  # noqa: NPY002
        advanced = RandomState.now().advanced_since(before)
        expected = np.random.rand()  # noqa: NPY002
        restore("numpy", advanced["numpy"])
        assert np.random.rand() == expected  # noqa: NPY002
    finally:
        np.random.set_bit_generator(usual)


def test_a_generator_that_only_kept_half_of_a_pair_moved_too():
    """`random.gauss` and numpy's keep the second value of a pair: it is part of their state."""
    np.random.seed(0)  # noqa: NPY002
    random.gauss(0, 1)
    before = RandomState.now()
    random.gauss(0, 1)
    assert list(RandomState.now().advanced_since(before)) == ["python"]


def test_nothing_moved_where_nothing_was_drawn():
    before = RandomState.now()
    random.Random(0).random()
    np.random.default_rng(0).random()
    torch.rand((), generator=torch.Generator())
    assert RandomState.now().advanced_since(before) == {}


def test_a_library_that_was_loaded_meanwhile_counts_as_moved(monkeypatch):
    monkeypatch.delitem(sys.modules, "numpy.random")
    before = RandomState.now()
    monkeypatch.undo()
    assert list(RandomState.now().advanced_since(before)) == ["numpy"]


def test_each_device_has_a_state_of_its_own(monkeypatch):
    """A stand-in for CUDA: two devices, of which the second draws."""
    states = [torch.tensor([1]), torch.tensor([2])]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: list(states))
    before = RandomState.now()
    states[1] = torch.tensor([3])
    assert RandomState.now().advanced_since(before) == {"cuda:1": torch.tensor([3])}


def test_a_device_that_is_missing_here_is_left_out(monkeypatch):
    restored = []
    fake = SimpleNamespace(
        device_count=lambda: 1, set_rng_state=lambda state, device: restored.append(device)
    )
    monkeypatch.setattr(torch, "cuda", fake)
    restore("cuda:0", torch.tensor([1]))
    restore("cuda:1", torch.tensor([1]))
    assert restored == ["cuda:0"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_generator_of_a_real_device_is_put_back():
    torch.rand((), device="cuda")
    before = RandomState.now()
    torch.rand((), device="cuda")
    advanced = RandomState.now().advanced_since(before)
    assert list(advanced) == [f"cuda:{torch.cuda.current_device()}"]
    expected = torch.rand((), device="cuda").item()
    restore(*next(iter(advanced.items())))
    assert torch.rand((), device="cuda").item() == expected


# ---- calls that overlapped


def span(start, end):
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    return Span(moment + dt.timedelta(seconds=start), moment + dt.timedelta(seconds=end))


def state(seed):
    random.seed(seed)
    return random.getstate()


def final_state(calls):
    """Return which call the generator is left at, of calls `(start, end)` in replayed order."""
    states = {state(number): call for number, call in enumerate(calls)}
    generators = Generators()
    for each, call in states.items():
        generators.advance({"python": each}, span(*call))
    return states[random.getstate()]


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 9), (1, 5), (2, 7)])))
def test_of_calls_that_overlapped_the_one_that_ended_last_counts(order):
    assert final_state(order) == (0, 9)


def test_of_calls_one_after_another_the_last_played_counts():
    assert final_state([(0, 1), (2, 3)]) == (2, 3)


def test_a_step_recorded_again_later_does_not_hold_back_the_next():
    assert final_state([(50, 51), (2, 3)]) == (2, 3)


def test_generators_are_judged_one_by_one():
    generators = Generators()
    generators.advance({"python": random.getstate()}, span(0, 9))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    generators.advance({"torch": state}, span(1, 5))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("state", [None, {}, (3, (), None), {"bit_generator": "MT19937"}], ids=repr)
@pytest.mark.parametrize("name", DRAWS)
def test_a_state_that_a_generator_does_not_take_is_refused_by_its_name(name, state):
    with pytest.raises(ValueError, match=f"{name} does not take its recorded state"):
        restore(name, state)


def test_a_replay_says_which_recording_has_a_state_that_is_not_taken(engine, tape, replay):
    """Numpy's global generator may be of another kind than in the recorded run."""
    usual = np.random.get_bit_generator()
    engine.random = SimpleNamespace(random=np.random.rand)
    tape(1)
    np.random.set_bit_generator(np.random.PCG64(0))
    try:
        with replay():
            with pytest.raises(rc.CassetteError, match=r"step 1 of .* numpy does not") as caught:
                engine.generate(["1"], 1)
            assert "restore_rng=False" in str(caught.value)
        with replay(restore_rng=False) as session:
            engine.generate(["1"], 1)
        assert session.played == [1]
    finally:
        np.random.set_bit_generator(usual)
