"""How cassettes, interactions and batches are told apart in an assertion that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import make_dataclass

import numpy as np
import pytest
import torch
from tensordict import TensorDict

import rollout_cassettes as rc
from rollout_cassettes.pytest_plugin.comparison import explain
from tests.pytest_plugin.example import Example


@pytest.fixture
def cassette(tmp_path):
    """Record batches: `cassette(name, *batches)`, a step for each."""

    def record(name, *batches):
        remaining = iter(batches)
        generate = rc.adapters.function(name=f"comparison-{name}-{len(batches)}")(
            lambda: next(remaining)
        )
        with rc.record(path=tmp_path / name):
            for _ in batches:
                generate()
        return rc.open_cassette(tmp_path / name)

    return record


def batch(**changed):
    ids = torch.arange(32).reshape(4, 8)
    for place, value in changed.items():
        row, token = (int(part) for part in place.removeprefix("at_").split("_"))
        ids[row, token] = value
    return {"input_ids": ids, "log_probs": torch.zeros(4, 8)}


def jagged(*rows):
    return torch.nested.nested_tensor([torch.tensor(row) for row in rows], layout=torch.jagged)


def test_equal_cassettes_are_equal(cassette):
    """Whenever they were recorded; and hash alike."""
    one, other = cassette("one", batch(), [1]), cassette("other", batch(), [1])
    assert one == other
    assert one[1] == other[1]
    assert (hash(one), hash(one[1])) == (hash(other), hash(other[1]))
    assert one != cassette("longer", batch(), [1], [2])
    assert one != cassette("different", batch(at_1_2=0), [1])
    assert one[1] != one[2]
    assert one != "one"
    assert one[1] != "one"


def test_the_first_row_and_token_that_differ_are_named(cassette):
    """With the types of all tensors."""
    left = cassette("left", batch(), batch())
    right = cassette("right", batch(), batch(at_2_5=99, at_3_0=98))
    assert explain(left, right, verbose=False) == [
        f"{left!r} == {right!r}",
        "step 2, response:",
        "first difference: ['input_ids'], row 2, token 5: 21 != 99, in i64[4,8]",
        "  ['input_ids']: i64[4,8]",
        "  ['log_probs']: f32[4,8]",
    ]


def test_cassettes_of_other_steps_are_told_by_their_steps(cassette):
    """Before anything is read."""
    left, right = cassette("left", 1, 2, 3), cassette("right", 1)
    assert explain(left, right, verbose=False)[1:] == [
        "steps 1-3 on the left, 1 on the right",
        "not on the right: step 2, step 3",
    ]
    assert explain(left[1], left[2], verbose=False)[1:] == [
        "step 1 on the left, step 2 on the right"
    ]


def test_damage_is_told_instead(cassette):
    """An explanation must not fail."""
    left, right = cassette("left", [1]), cassette("right", [1])
    left[1].path.write_bytes(b"")
    assert "is damaged" in explain(left, right, verbose=False)[1]


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        (
            TensorDict(batch(), [4]),
            TensorDict(batch(at_3_1=7), [4]),
            "['input_ids'], row 3, token 1: 25 != 7, in i64[4,8]",
        ),
        (
            {"ids": jagged([1, 2, 3], [4, 5])},
            {"ids": jagged([1, 2, 3], [4, 6])},
            "['ids'], row 1, token 1: 5 != 6, in i64[2,*]",
        ),
        (
            {"ids": jagged([1, 2, 3], [4, 5])},
            {"ids": jagged([1, 2, 3], [4, 5, 6])},
            "['ids']: i64[2] in row 1 != i64[3] in row 1",
        ),
        ([np.zeros(2), "a"], [np.zeros(2), "b"], "[1]: 'a' != 'b'"),
        (torch.zeros(2, 2, 2), torch.ones(2, 2, 2), "the value itself, row 0, token 0, item [0]: "),
        ({"x": torch.zeros(2, 3)}, {"x": torch.zeros(2, 3).half()}, "['x']: f32[2,3] != f16[2,3]"),
    ],
)
def test_batches_of_all_kinds_are_compared(left, right, told):
    """Jagged ones row by row."""
    lines = explain(left, right, verbose=False)
    assert lines[0] == "two batches differ"
    assert lines[1].startswith(f"first difference: {told}")


def test_few_tensors_are_listed_unless_all_are_wanted():
    """A batch may have dozens."""
    left = {f"t{number}": torch.zeros(1) for number in range(12)}
    right = {**left, "t3": torch.ones(1)}
    assert explain(left, right, verbose=False)[-1] == "  and 2 more tensors: use -v to see them"
    assert explain(left, right, verbose=True)[-1] == "  ['t11']: f32[1]"


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 2), ("a", "b"), ([1], [2]), ({"a": [1]}, {"a": [2]}), (torch.zeros(1), 1), ([], {})],
)
def test_values_of_other_kinds_are_left_to_pytest(left, right):
    """It knows better."""
    assert explain(left, right, verbose=False) is None


def test_pytest_shows_the_explanation():
    """In a real run, with the values before it."""
    example = Example.of("""
def test_one(tmp_path):
    for name in ("left", "right"):
        with rc.record(path=tmp_path / name):
            engine.generate([name])
    assert rc.open_cassette(tmp_path / "left") == rc.open_cassette(tmp_path / "right")
""")
    output = example.run_pytest(outcomes={"failed": 1}).output
    assert "step 1, request:" in output
    assert "first difference: [0]: 'left' != 'right'" in output


def test_values_of_other_kinds_are_left_alone():
    """However they are made; and of long ones only the beginning is looked at."""
    slotted = make_dataclass("Slotted", ["ids"], slots=True)
    assert explain(slotted(1), slotted(2), verbose=False) is None
    assert explain(slotted, slotted, verbose=False) is None
    endless = Endless()
    assert explain(endless, endless, verbose=False) is None


class Endless(Sequence):
    read = 0

    def __len__(self):
        return 10**9

    def __getitem__(self, place):
        self.read += 1
        assert self.read < 10_000
        return place
