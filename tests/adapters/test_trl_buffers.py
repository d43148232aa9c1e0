"""What TRL's trainers note, with a stand-in that has nothing else."""

from __future__ import annotations

from collections import defaultdict, deque
from types import SimpleNamespace

import pytest

from rollout_cassettes.adapters.trl import buffers


@pytest.fixture
def make():
    """Make what the buffers look at: `make(training=True, tokens=0) -> trainer`."""

    def make(training=True, tokens=0):
        return SimpleNamespace(
            model=SimpleNamespace(training=training),
            state=SimpleNamespace(num_input_tokens_seen=tokens),
            _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
            _logs={
                "prompt": deque(maxlen=4),
                "rewards": defaultdict(lambda: deque(maxlen=4)),
            },
        )

    return make


def note(trainer, mode, length, tokens):
    """Do to a trainer what generating does."""
    trainer.state.num_input_tokens_seen += tokens
    trainer._metrics[mode]["num_tokens"] = [trainer.state.num_input_tokens_seen]
    trainer._metrics[mode]["length"].append(length)
    trainer._logs["prompt"].append("why?")
    trainer._logs["rewards"]["digits"].append(float(length))


def test_only_what_a_call_added_is_put_back(make):
    """Behind what is there; the count of tokens goes on from where it stands."""
    live = make()
    note(live, "train", 1, 10)
    before = buffers.marks(live)
    note(live, "train", 2, 20)
    added = buffers.added(live, before, logs=False)
    again = make(tokens=100)
    again._metrics["train"]["length"].append(7)
    again._metrics["train"]["num_tokens"] = [100]
    buffers.put_back(again, added)
    assert again._metrics["train"] == {"length": [7, 2], "num_tokens": [120]}
    assert again._metrics["eval"] == {}
    assert again.state.num_input_tokens_seen == 120
    assert not again._logs["prompt"]


def test_metrics_of_an_evaluation_are_its_own(make):
    """Those of the training, which were not logged yet, are no part of them."""
    live = make()
    note(live, "train", 1, 10)
    live.model.training = False
    before = buffers.marks(live)
    note(live, "eval", 2, 0)
    again = make(training=False, tokens=5)
    buffers.put_back(again, buffers.added(live, before, logs=False))
    assert again._metrics == {"train": {}, "eval": {"length": [2], "num_tokens": [5]}}


def test_the_log_of_completions_is_as_it_was_after_the_call(make):
    """It holds the last batch, whatever was there before."""
    live = make()
    before = buffers.marks(live)
    note(live, "train", 2, 20)
    again = make()
    for length in (7, 8, 9):
        note(again, "train", length, 1)
    again._logs["rewards"]["others"].append(1.0)
    buffers.put_back(again, buffers.added(live, before, logs=True))
    assert again._logs == live._logs
    assert again._logs["rewards"]["digits"].maxlen == 4
