"""tensordict's containers, in trees."""

from __future__ import annotations

import pytest
import tensordict
import torch
from hypothesis import given
from tensordict import (
    LazyStackedTensorDict,
    NonTensorData,
    NonTensorStack,
    TensorDict,
    TensorDictParams,
    tensorclass,
)

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests import strategies
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored
from tests.cassette.sameness import assert_same

CAN_BE_EMPTY = tuple(map(int, tensordict.__version__.split(".")[:2])) >= (0, 15)


@given(strategies.tensordicts(strategies.leaves))
def test_a_tensordict_comes_back_the_same(batch):
    assert_same(batch, round_trip(batch))


@given(strategies.lazy_stacks(strategies.leaves))
def test_a_lazy_stack_comes_back_the_same(stack):
    assert_same(stack, round_trip(stack))


@given(strategies.non_tensor_stacks(strategies.leaves))
def test_a_stack_of_non_tensors_comes_back_the_same(stack):
    assert_same(stack, round_trip(stack))


def row(**fields):
    return TensorDict({name: torch.as_tensor(value) for name, value in fields.items()})


@pytest.mark.parametrize(
    "make",
    [
        lambda: TensorDict({}),
        lambda: TensorDict({}, batch_size=[0, 2]),
        lambda: TensorDict({"a": torch.ones(2, 3)}, batch_size=[2, 3], names=["x", None]),
        lambda: TensorDict(
            {"a": TensorDict({}, batch_size=[2, 1], names=[None, "y"])}, batch_size=[2]
        ),
        lambda: TensorDict(
            {"a": TensorDict({"b": torch.ones(2)}, [2], device="cpu")}, batch_size=[2]
        ),
        lambda: TensorDict({"a": TensorDict({"b": torch.ones(2)}, [2]).lock_()}, batch_size=[2]),
        lambda: TensorDict({"": torch.ones(1), "/": 1.0, "~": 2.0, "$": 3.0, "batch_size": 4.0}),
        lambda: TensorDict({"a": "text", "b": NonTensorData([1, {"c": None}])}),
        lambda: TensorDict(
            {"a": torch.nn.Parameter(torch.ones(2)), "b": torch.ones(2, requires_grad=True)}
        ),
        lambda: LazyStackedTensorDict(row(a=[1.0]), row(b=1), stack_dim=0),
        lambda: LazyStackedTensorDict(
            TensorDict({"a": torch.ones(2, 3)}, [2], names=["x"]),
            TensorDict({"a": torch.ones(2, 1)}, [2], names=["x"]),
            stack_dim=1,
            stack_dim_name="y",
        ),
        lambda: LazyStackedTensorDict(
            LazyStackedTensorDict(row(a=1), row(a=[2])), LazyStackedTensorDict(row(a=3), row(b=4))
        ).lock_(),
        lambda: TensorDict(
            {"a": LazyStackedTensorDict(row(b=1), row(b=[1, 2]))}, [2], names=["x"], device="cpu"
        ),
        lambda: NonTensorData("x", batch_size=[2], names=["x"], device="cpu").lock_(),
        lambda: NonTensorData(TensorDict({"a": torch.ones(1)})),
        lambda: NonTensorData(torch.ones(2)),
        lambda: NonTensorData(None),
        lambda: NonTensorStack("a", None, {"b": 1}, [1], (2,)),
        lambda: NonTensorStack("a", "b", stack_dim_name="x"),
        lambda: NonTensorStack(NonTensorStack("a", "b"), NonTensorStack("c", "d")),
        lambda: NonTensorStack(
            NonTensorData("a", batch_size=[2]), NonTensorData("b", batch_size=[2]), stack_dim=1
        ),
        lambda: NonTensorStack(NonTensorData("a", device="cpu"), NonTensorData("b", device="cpu")),
        lambda: NonTensorStack("a", "b").lock_(),
        lambda: TensorDict({"a": ["x", "y"]}, batch_size=[2]),
        lambda: torch.stack([TensorDict({"a": "x"}), TensorDict({"a": "y"})]),
        pytest.param(
            lambda: NonTensorStack(stack_dim=1, batch_size=[2]),
            marks=pytest.mark.skipif(
                not CAN_BE_EMPTY, reason="tensordict < 0.15 has no empty stacks"
            ),
        ),
        pytest.param(
            lambda: LazyStackedTensorDict(stack_dim=0),
            marks=pytest.mark.skipif(
                not CAN_BE_EMPTY, reason="tensordict < 0.15 has no empty stacks"
            ),
        ),
    ],
)
def test_an_odd_container_comes_back_the_same(make):
    container = make()
    assert_same(container, round_trip(container))


@pytest.mark.parametrize("name", [None, "x"])
def test_a_stack_of_non_tensors_is_as_its_constructor_makes_it(name):
    """Attribute by attribute, though it is not its constructor that makes it."""
    stack = NonTensorStack("a", {"b": [1]}, None, stack_dim_name=name)
    again = round_trip(stack)
    assert {**vars(stack), "tensordicts": 0} == {**vars(again), "tensordicts": 0}
    for left, right in zip(stack.tensordicts, again.tensordicts, strict=True):
        assert vars(left) | {"_tensordict": 0} == vars(right) | {"_tensordict": 0}
        assert vars(left._tensordict) == vars(right._tensordict)


def test_the_items_of_a_stack_of_non_tensors_are_each_their_own():
    """Changing one changes no other, nor the stack that is read next."""
    stack = NonTensorStack("a", "b")
    again = round_trip(stack)
    again.tensordicts[0].batch_size = [2]
    again.tensordicts[0].lock_()
    assert_same(stack.tensordicts[1], again.tensordicts[1])
    assert_same(stack, round_trip(stack))


@pytest.mark.parametrize("values", [["a", None, {"b": torch.ones(2)}], []])
def test_a_column_of_a_batch_comes_back_as_one_without_its_batch(values):
    column = TensorDict({"text": ["x", "y"]}, [2])["text"]
    column.clear()
    column.extend(values)
    again = round_trip(column)
    assert type(again) is type(column)
    assert_same(list(column), list(again))
    again.append("y")
    again[0] = "z"
    assert again[0] == "z"


def test_a_stack_of_non_tensors_can_be_worked_with():
    """As one that was never recorded: indexed, joined, and a column of a batch."""
    again = round_trip(NonTensorStack("a", "b", "c"))
    assert again[1:].tolist() == ["b", "c"]
    assert torch.cat([again, again[:1]]).tolist() == ["a", "b", "c", "a"]
    batch = TensorDict({"x": torch.arange(3), "text": again}, [3])
    assert batch[torch.tensor([2, 0])]["text"] == ["c", "a"]
    assert torch.stack([batch, batch]).batch_size == (2, 3)


def test_a_batch_comes_back_unlocked_by_one_call_if_one_call_locked_it():
    batch = TensorDict({"a": LazyStackedTensorDict(row(b=1), row(b=2)), "c": ["x", "y"]}, [2])
    again = round_trip(batch.lock_())
    with pytest.raises(RuntimeError, match="lock"):
        again["d"] = torch.ones(2)
    again.unlock_()["a", "e"] = torch.ones(2)
    assert again["a", "e"].tolist() == [1, 1]


def test_jagged_columns_that_shared_offsets_still_add_up():
    prompts = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
    again = round_trip(TensorDict({"a": prompts, "b": prompts * 2}, batch_size=[2]))
    assert (again["a"] + again["b"]).values().tolist() == [3, 3, 3]


def test_a_memory_mapped_batch_comes_back_with_the_same_values(tmp_path):
    batch = TensorDict({"a": torch.arange(3)}).memmap_(tmp_path)
    assert_same(torch.arange(3), round_trip(batch)["a"])


@tensorclass
class Trajectory:
    tokens: torch.Tensor
    text: str


def test_a_tensorclass_comes_back_the_same():
    batch = Trajectory(tokens=torch.arange(4).view(2, 2), text="x", batch_size=[2])
    again = round_trip(batch)
    assert type(again) is Trajectory
    assert (again.text, again.tokens.tolist()) == ("x", [[0, 1], [2, 3]])
    assert again[1].tokens.tolist() == [2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TensorDictParams(TensorDict({"a": torch.ones(1)})),
        lambda: TensorDict({"a": torch.ones(4)}, [4])._get_sub_tensordict(slice(2)),
        lambda: type("Mine", (TensorDict,), {})({"a": torch.ones(1)}),
    ],
    ids=["params", "sub", "subclass"],
)
def test_another_kind_of_tensordict_is_refused(make):
    with pytest.raises(UnstorableValueError, match="no codec knows this type"):
        round_trip(make())


def test_a_stack_is_left_out_whole_where_an_item_is():
    """Half a stack would be another batch; what stands beside it is kept."""
    item = TensorDict({"a": NonTensorData(object())})
    value = {"stack": LazyStackedTensorDict(item, row(a=1)), "kept": torch.ones(1)}
    parts = tree.split(value, "response")
    assert [omission.path for omission in parts.omissions] == ["response/stack/0/a/data"]
    again = round_trip(value, strict=False)
    assert again["kept"].tolist() == [1]
    assert isinstance(again["stack"], tree.Omitted)


def test_a_value_that_was_left_out_of_a_batch_leaves_the_batch_whole():
    batch = TensorDict({"a": NonTensorData(object(), batch_size=[1]), "b": torch.ones(1)}, [1])
    again = round_trip(batch, strict=False)
    assert again["b"].tolist() == [1]
    assert isinstance(again["a"], tree.Omitted)


@pytest.mark.parametrize(
    "entries",
    [
        {"batch_size": [3]},
        {"batch_size": "x"},
        {"names": ["x", "y"]},
        {"fields": {"a": 1, 2: 3}},
        {"fields": None},
        {"device": 1},
    ],
    ids=str,
)
def test_a_malformed_tensordict_is_damage(entries):
    skeleton, data = stored(TensorDict({"a": torch.ones(2)}, batch_size=[2]))
    with pytest.raises(CassetteCorruptError):
        tree.join({**skeleton, **entries}, data, source=SOURCE)


def test_batches_are_dicts_and_lists_where_no_tensordict_is_wanted():
    batch = TensorDict(
        {
            "tokens": torch.ones(2, 1),
            "text": NonTensorStack("a", {"b": 1}),
            "one": NonTensorData((1,), batch_size=[2]),
            "lazy": LazyStackedTensorDict(row(x=1), row(x=[2])),
        },
        batch_size=[2],
    )
    again = plain(batch)
    assert (again["text"], again["one"]) == (["a", {"b": 1}], (1,))
    assert again["tokens"].tolist() == [[1], [1]]
    assert [item["x"].tolist() for item in again["lazy"]] == [1, [2]]
