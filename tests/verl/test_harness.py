"""The in-process verl training that other tests build on."""

from __future__ import annotations

import pytest
import torch

from tests.verl.overrides import (
    COLOCATE_ASYNC,
    SEPARATE_ASYNC,
    SORTED,
    TWO_OUTPUTS,
    VALIDATION,
)

pytestmark = pytest.mark.verl


def test_a_training_changes_the_weights_and_logs_every_step(train, assets):
    """Three steps leave other weights, three update calls and three lines of metrics."""
    run = train(steps=3)
    initial = initial_parameters(assets)
    assert any(not torch.equal(initial[name], value) for name, value in run.parameters.items())
    assert len(run.actor_batches) == 3
    assert sorted(run.metrics) == [1, 2, 3]
    assert run.metrics[3]["actor/pg_loss"] != 0
    assert sorted(run.digests) == [0, 1, 2, 3]
    assert len(set(run.digests.values())) == 4


def test_two_live_runs_with_sorted_rows_are_equal_to_the_bit(train):
    """The stand-ins are deterministic: what differs in a replay is the replay's doing."""
    first, second = train(overrides=SORTED), train(overrides=SORTED)
    assert_equal_parameters(first, second)
    for index, state in first.optimizer_state.items():
        for name, value in state.items():
            assert torch.equal(value, second.optimizer_state[index][name])
    assert untimed(first.metrics) == untimed(second.metrics)


def test_another_data_seed_gives_other_weights(train):
    """The comparison above could fail."""
    first, second = train(overrides=SORTED), train(overrides=(*SORTED, "data.seed=8"))
    with pytest.raises(AssertionError):
        assert_equal_parameters(first, second)


def test_the_llm_is_asked_once_per_trajectory(train):
    """Four prompts of two sessions make eight requests a step."""
    run = train(steps=2)
    assert run.requests == (16, 0)
    assert [len(batch.keys) for batch in run.actor_batches] == [8, 8]


def test_validation_requests_are_counted_apart(train):
    """Four prompts are validated before training, at step 2 and at the last."""
    run = train(steps=3, overrides=VALIDATION)
    assert run.requests == (24, 12)
    assert sorted(run.metrics) == [0, 1, 2, 3]
    assert "val-core/toy/sums/acc/mean@1" in run.metrics[0]


def test_a_failing_request_gives_fewer_trajectories(train):
    """The batch is padded to a multiple of the mini-batch, and the padding tagged."""
    run = train(steps=1, fail=(3,))
    (batch,) = run.actor_batches
    real = [tag for tag in batch.tags if not tag.get("is_padding")]
    assert len(real) == 7
    assert len(batch.keys) == 8


def test_every_session_can_have_two_outputs(train):
    """A custom agent loop makes keys that end in _0 and _1."""
    run = train(steps=1, overrides=TWO_OUTPUTS)
    (batch,) = run.actor_batches
    assert len(batch.keys) == 16
    assert {key.rsplit("_", 1)[1] for key in batch.keys} == {"0", "1"}
    assert run.requests.training == 16


def test_a_batch_of_the_actor_is_kept_whole(train):
    """Keys, tags and all fields, the rollout's and those computed in between."""
    (batch,) = train(steps=1).actor_batches
    assert len(batch.tags) == len(batch.keys) == len(batch.fields["input_ids"])
    fields = {"prompts", "responses", "rollout_log_probs", "old_log_probs", "advantages", "uid"}
    assert fields <= batch.fields.keys()
    assert all(
        key.startswith(uid) for key, uid in zip(batch.keys, batch.fields["uid"], strict=True)
    )


def test_the_queue_is_empty_at_the_end(train):
    """The trainer clears what it has trained on."""
    assert train(steps=2, overrides=VALIDATION).queue_left == {}


@pytest.mark.parametrize("mode", [COLOCATE_ASYNC, SEPARATE_ASYNC], ids=["colocate", "separate"])
def test_asynchronous_trainers_run_too(train, mode):
    """They submit a batch ahead, so that one is left at the end."""
    run = train(steps=2, overrides=mode)
    assert run.requests.training == 24
    assert len(run.queue_left["train"]) == 12


def test_a_training_that_fails_leaves_nothing_behind(train, local_queue):
    """The next test starts from an empty queue."""
    with pytest.raises(RuntimeError, match="no materializable trajectories"):
        train(steps=1, fail=range(1, 9))
    assert local_queue.keys() == {}


def initial_parameters(assets):
    """Read the weights that every training starts from."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(assets.model, dtype=torch.float32)
    return dict(model.named_parameters())


def assert_equal_parameters(first, second):
    """Compare every bit."""
    assert first.parameters.keys() == second.parameters.keys()
    for name, value in first.parameters.items():
        assert torch.equal(value, second.parameters[name]), name


def untimed(metrics):
    """Leave out what is measured with a clock."""
    clocked = ("timing_s/", "timing_per_token_ms/", "perf/")
    return {
        step: {name: value for name, value in line.items() if not name.startswith(clocked)}
        for step, line in metrics.items()
    }
