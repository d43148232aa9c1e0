"""The command `diff`."""

from __future__ import annotations

import shutil

import pytest
import torch

import rollout_cassettes as rc
from tests.cli.program import DEMO, invoke, loaded


def firsts(*arguments, status=1):
    """Give the first difference of each interaction."""
    found = loaded("diff", *arguments, status=status)
    return [each["first"] for each in found["interactions"]]


def test_equal_cassettes_are_equal(demo):
    """However they are compressed."""
    assert firsts(DEMO, demo, status=0) == [None] * 3
    assert invoke("diff", DEMO, demo).stdout.count("equal") == 3
    both = DEMO.parent / "format-v1"
    assert firsts(both / "plain", both / "zstd", status=0) == [None] * 7


@pytest.mark.parametrize(
    ("field", "change", "told"),
    [
        ("completion_ids", lambda t: t["completion_ids"].__setitem__((1, 2), 99), "10, and 99"),
        ("log_probs", lambda t: t["log_probs"].__setitem__((1, 2), -2.25), "-2.5, and -2.25"),
    ],
)
def test_the_first_row_field_and_token_are_named(field, change, told, record, texts):
    def changed(step):
        answer = texts(step)
        if step == 2:
            change(answer)
        return answer

    first, second = firsts(record("a", texts), record("b", changed))
    named = {"completion_ids": "response_ids"}.get(field, field)
    assert first is None
    assert second == {"what": told, "row": 1, "field": named, "token": 2}


def test_people_read_it_in_a_line(record, texts):
    def changed(step):
        return {**texts(step), "completions": ["two 1", "six"]}

    line = invoke("diff", record("a", texts), record("b", changed, steps=[1]), status=1).stdout
    assert "row 1, field response: 'fünf 🎞', and 'six'" in line
    assert "only in A" in line


@pytest.mark.parametrize("bits", [(0.0, -0.0), (1.0, float("nan")), (1.0, 1.0 + 2**-23)])
def test_values_are_compared_to_the_bit(bits, record):
    was, now = bits
    one = record("a", lambda step: {"response": ["x"], "log_probs": torch.tensor([[was]])}, [1])
    other = record("b", lambda step: {"response": ["x"], "log_probs": torch.tensor([[now]])}, [1])
    assert firsts(one, one, status=0) == [None]
    assert firsts(one, other)[0]["token"] == 0


def test_what_is_in_no_row_is_compared_too(record):
    """Of a function's answer all is known; where it differs is told by its path."""
    one = record("a", lambda step: {"response": ["x"], "options": {"top": [1, 2]}}, [1])
    other = record("b", lambda step: {"response": ["x"], "options": {"top": [1, 3]}}, [1])
    (first,) = firsts(one, other)
    assert first == {
        "what": "2, and 3",
        "row": None,
        "field": "response.options.top[1]",
        "token": None,
    }


def test_shapes_dtypes_and_lengths_are_told(record):
    def of(value):
        return lambda step: {"value": value, "more": [1, 2]}

    base = record("base", of(torch.zeros(2, 3)), [1])
    for name, value, told in [
        ("wide", torch.zeros(2, 4), "f32[2,3], and f32[2,4]"),
        ("long", torch.zeros(3, 3), "f32[2,3], and f32[3,3]"),
        ("int", torch.zeros(2, 3, dtype=torch.int64), "f32[2,3], and i64[2,3]"),
        ("none", None, "f32[2,3], and None"),
    ]:
        assert firsts(base, record(name, of(value), [1]))[0]["what"] == told


def test_rows_of_verl_are_paired_by_prompt_and_session(demo, tmp_path):
    """They come in the order in which they finish: that is told, and told last."""
    with rc.open_cassette(DEMO, numpy=True)[1].path.open("rb"):
        moved = _reordered(DEMO, tmp_path / "moved")
    first, *others = firsts(DEMO, moved)
    assert first["what"] == "the rows are the same, and come in another order"
    assert others == [None, None]


def test_durations_are_not_compared_unless_asked_for(record):
    one = record("a", lambda step: {"response": ["x"], "metrics": [{"seconds": 1.0}]}, [1])
    other = record("b", lambda step: {"response": ["x"], "metrics": [{"seconds": 2.0}]}, [1])
    first = firsts(one, other)[0]  # it is no row's alone: a function's answer is compared whole
    assert first["field"] == "response.metrics[0].seconds"
    first = firsts(one, other, "--ignore", "uid")[0]
    assert first["field"] == "metadata.metrics.seconds"


def test_another_adapter_is_a_difference(record, texts, demo):
    first = firsts(demo, record("a", texts))[0]
    assert first["what"] == "recorded by verl_v1, and by tests.cli"


def test_damage_and_absence_are_errors(demo, tmp_path):
    assert "There is no cassette at" in invoke("diff", demo, tmp_path / "x", status=1).stderr
    (demo / "step-000002.safetensors.zst").write_bytes(b"")
    assert "is damaged" in invoke("diff", DEMO, demo, status=1).stderr


def _reordered(source, target):
    """Copy a cassette of verl's with the rows of its first step the other way round."""
    import dataclasses

    from rollout_cassettes.cassette.packed import Packed
    from rollout_cassettes.cassette.tree import split
    from rollout_cassettes.cassette.writer import Writer

    shutil.copytree(source, target)
    interaction = rc.open_cassette(source, numpy=True)[1]
    response = interaction.response
    response["data"] = {n: c[::-1] for n, c in response["data"].items()}
    response["batch"]["keys"].reverse()
    parts = {"request": interaction.request, "response": response, "random_state": {}}
    found = {name: split(value, name) for name, value in parts.items()}
    trees = Packed.pack({name: each.skeleton for name, each in found.items()}, "zstd")
    tensors = {n: t for each in found.values() for n, t in each.tensors.items()}
    writer = Writer(target)
    writer.write(
        rc.Key(1),
        tensors,
        lambda entry: dataclasses.replace(interaction.manifest, tensors=entry, trees=trees),
    )
    writer.close()
    return target
