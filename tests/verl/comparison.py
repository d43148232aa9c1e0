"""Are two trainings equal to the bit, apart from the clock and the uids?"""

from __future__ import annotations

import torch

CLOCKED = ("timing_s/", "timing_per_token_ms/", "perf/", "actor/perf/")


def assert_equal_trainings(first, second):
    """Compare parameters, optimizer state, logged metrics, and what the actor was handed."""
    assert_equal_tensors(first.parameters, second.parameters)
    assert first.optimizer_state.keys() == second.optimizer_state.keys()
    for index, state in first.optimizer_state.items():
        assert_equal_tensors(state, second.optimizer_state[index])
    assert untimed(first.metrics) == untimed(second.metrics)
    assert len(first.actor_batches) == len(second.actor_batches)
    for left, right in zip(first.actor_batches, second.actor_batches, strict=True):
        assert_equal_batches(left, right)


def assert_equal_tensors(first, second):
    """Compare every bit of tensors by name."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.dtype == second[name].dtype, name
        assert torch.equal(value, second[name]), name


def assert_equal_batches(first, second):
    """Compare what `update_actor` was handed: rows in order, every field, keys and tags."""
    names = dict(zip(uids(second), uids(first), strict=True))
    assert [renamed(key, names) for key in second.keys] == first.keys
    assert [renamed(tag, names) for tag in second.tags] == first.tags
    assert (second.partition_id, second.extra_info) == (first.partition_id, first.extra_info)
    assert second.fields.keys() == first.fields.keys()
    for name, column in first.fields.items():
        for left, right in zip(column, second.fields[name], strict=True):
            assert_equal_values(left, renamed(right, names), name)


def assert_equal_values(first, second, name):
    """Compare one field of one row."""
    assert type(first) is type(second), name
    if isinstance(first, torch.Tensor):
        assert first.dtype == second.dtype, name
        assert torch.equal(first, second), name
    else:
        assert first == second, name


def uids(batch):
    """Give the uids of a batch in the order in which they first appear."""
    return list(dict.fromkeys(batch.fields["uid"]))


def renamed(value, names):
    """Give a value with every uid replaced, in keys too."""
    if isinstance(value, str):
        head, underscore, tail = value.partition("_")
        return names.get(head, head) + underscore + tail
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return value


def untimed(metrics):
    """Leave out what is measured with a clock."""
    return {
        step: {name: value for name, value in line.items() if not name.startswith(CLOCKED)}
        for step, line in metrics.items()
    }
