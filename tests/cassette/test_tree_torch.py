"""torch's tensors, in trees."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given

from rollout_cassettes.cassette import tree
from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError
from tests import strategies
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored
from tests.cassette.sameness import assert_same, bits


@given(strategies.tensors())
def test_a_tensor_comes_back_the_same(tensor):
    assert_same(tensor, round_trip(tensor))


@given(strategies.jagged())
def test_a_jagged_tensor_comes_back_the_same(tensor):
    assert_same(tensor, round_trip(tensor))


@given(strategies.strided_nested())
def test_a_strided_nested_tensor_comes_back_the_same(tensor):
    assert_same(tensor, round_trip(tensor))


@given(strategies.torch_values)
def test_dtypes_devices_layouts_and_sizes_come_back(value):
    assert_same(value, round_trip(value))


@pytest.mark.parametrize("shape", [(), (3,), (0, 3)], ids=str)
@pytest.mark.parametrize(
    "dtype",
    sorted(
        {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
        - {torch.qint8, torch.qint32, torch.quint8, torch.quint4x2, torch.quint2x4},
        key=str,
    ),
    ids=str,
)
def test_every_dtype_of_torch_comes_back(dtype, shape):
    tensor = torch.empty(shape, dtype=dtype)
    again = round_trip(tensor)
    assert (again.dtype, again.shape) == (dtype, tensor.shape)
    assert again.untyped_storage().tolist() == tensor.untyped_storage().tolist()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).view(3, 4).t(),
        torch.arange(12).view(3, 4)[1:, ::2],
        torch.arange(4)[::2][1:],
        torch.ones(1).expand(2, 3),
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([1 + 2j]).conj().imag,
        torch.zeros(2, requires_grad=True) * 2,
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False),
        torch.zeros(3, dtype=torch.uint16)[1::2],
    ],
    ids=lambda tensor: f"{tensor.dtype}{tuple(tensor.shape)}{tensor.stride()}",
)
def test_an_odd_tensor_comes_back_with_the_same_bits(tensor):
    again = round_trip(tensor)
    assert type(again) is type(tensor)
    assert (again.shape, again.requires_grad) == (tensor.shape, tensor.requires_grad)
    assert bits(again) == bits(tensor)


# ---- shared memory


def test_the_same_tensor_is_stored_once_and_shared_again():
    tensor = torch.zeros(2)
    skeleton, data = stored({"a": tensor, "b": tensor, "c": [tensor.view(2)]})
    assert list(data) == ["response/a"]
    again = tree.join(skeleton, data, source=SOURCE)
    again["a"].add_(1)
    assert again["b"].tolist() == again["c"][0].tolist() == [1, 1]


def test_views_of_one_memory_come_back_whether_or_not_they_overlap():
    """The safetensors library refuses such tensors; a batch and its rows are some."""
    whole = torch.arange(12).view(3, 4)
    views = [whole, *whole.unbind(), whole[1:], whole[:2], whole.t(), whole.view(torch.int32)]
    assert_same(views, round_trip(views))


def test_memory_that_was_freed_meanwhile_is_not_taken_for_the_same(fresh_table):
    """A temporary's memory is soon given to the next one."""

    class Rows(list):
        pass

    makes = [lambda number=number: torch.full((1000,), float(number)) for number in range(20)]
    tree.register_codec(Rows, lambda rows: [make() for make in rows], Rows, name="temporaries")
    assert [tensor[0].item() for tensor in round_trip(Rows(makes))] == list(range(20))


def test_a_gradient_is_required_where_it_was_and_nowhere_else():
    tensor = torch.zeros(2, requires_grad=True)
    again = round_trip([tensor, tensor.detach(), tensor])
    assert [each.requires_grad for each in again] == [True, False, True]


# ---- nested tensors


def nested(*lengths, **options):
    rows = [torch.arange(float(length)) for length in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged, **options)


def test_jagged_tensors_that_shared_offsets_still_add_up():
    """torch adds jagged tensors only where their offsets are the same object."""
    prompts = nested(2, 0, 3)
    assert (prompts + prompts * 2).values().tolist() == [0, 3, 0, 3, 6]
    first, second, third = round_trip([prompts, prompts * 2, nested(2, 0, 3)])
    assert (first + second).values().tolist() == [0, 3, 0, 3, 6]
    with pytest.raises(RuntimeError):
        first + third


@pytest.mark.parametrize(
    "make",
    [
        lambda: nested(0, 0),
        lambda: nested(2, 1, requires_grad=True),
        lambda: nested(2, 1, dtype=torch.complex64),
        lambda: torch.nested.nested_tensor_from_jagged(torch.ones(0), offsets=torch.tensor([0])),
        lambda: torch.nested.nested_tensor_from_jagged(
            torch.ones(3).to(torch.float8_e4m3fn), offsets=torch.tensor([0, 1, 3])
        ),
        lambda: torch.nested.narrow(
            torch.arange(30.0).view(3, 5, 2),
            1,
            torch.tensor([0, 1, 2]),
            torch.tensor([2, 0, 3]),
            layout=torch.jagged,
        ).transpose(1, 2),
        lambda: torch.nested.nested_tensor([]),
        lambda: torch.nested.nested_tensor([torch.tensor(1), torch.tensor(2)]),
        lambda: torch.nested.nested_tensor([torch.ones(0, 3), torch.ones(2, 0)]),
        lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 5)]).transpose(1, 2),
    ],
)
def test_an_odd_nested_tensor_comes_back_the_same(make):
    tensor = make()
    assert_same(tensor, round_trip(tensor))


@pytest.mark.parametrize(
    ("offsets", "lengths", "ragged_dim"),
    [
        ([0, 2, 4], None, 1),
        ([0, 3, 2], None, 1),
        ([-1, 1, 3], None, 1),
        ([0, 1, 3], [1, 9], 1),
        ([0, 1, 3], [-1, 1], 1),
        ([0, 1, 3], [1], 1),
        ([0.0, 1.0, 3.0], None, 1),
        ([[0, 3]], None, 1),
        ([], None, 1),
        ([0, 1, 3], None, 0),
        ([0, 1, 3], None, 2),
        ([0, 1, 3], None, None),
    ],
)
def test_rows_outside_of_the_values_are_damage(offsets, lengths, ragged_dim):
    """torch checks none of this, and would read what lies beyond."""
    parts = [
        torch.ones(3),
        torch.tensor(offsets),
        None if lengths is None else torch.tensor(lengths),
    ]
    (values, places, sizes), data = stored(parts)
    entries = {"values": values, "offsets": places, "lengths": sizes, "ragged_dim": ragged_dim}
    with pytest.raises(CassetteCorruptError):
        tree.join({"$": "torch.tensor", "jagged": entries}, data, source=SOURCE)


@pytest.mark.parametrize("shapes", [[[2]], [[2], [2]], [[3, 1], [-1]], [["a"]], None])
def test_rows_of_other_sizes_than_the_values_are_damage(shapes):
    skeleton, data = stored(torch.ones(3))
    node = {"$": "torch.tensor", "nested": {"values": skeleton, "shapes": shapes}}
    for read in (tree.join, tree.plain):
        with pytest.raises(CassetteCorruptError):
            read(node, data, source=SOURCE)


# ---- what can't be stored


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: torch.ones(2).to_sparse(), "its layout is torch.sparse_coo"),
        (lambda: torch.empty(2, dtype=torch.qint8), "it is quantized"),
        (lambda: torch.ones(2, device="meta"), "no data"),
        (lambda: nested(2, 1).shape, "the size of a jagged tensor"),
        (lambda: nested(2, 1).shape[1], "no codec knows this type"),
        (torch.Generator, "no codec knows this type"),
    ],
    ids=["sparse", "quantized", "meta", "ragged size", "symbolic integer", "generator"],
)
def test_a_tensor_without_plain_data_is_refused(make, reason):
    with pytest.raises(UnstorableValueError, match=reason):
        round_trip([make()])


# ---- devices


@pytest.mark.parametrize("device", ["cuda:99", "xpu:0", "npu:1", "mps:0", "meta"])
def test_a_tensor_of_a_missing_device_comes_back_on_the_cpu(device):
    skeleton, data = stored(torch.arange(3))
    again = tree.join({**skeleton, "device": device}, data, source=SOURCE)
    assert_same(torch.arange(3), again)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_tensor_comes_back_on_its_gpu():
    batch = {
        "dense": torch.arange(3, device="cuda"),
        "jagged": nested(2, 1, device="cuda"),
        "index": torch.ones(2, device="cuda:0", dtype=torch.bfloat16, requires_grad=True),
    }
    assert_same(batch, round_trip(batch))
    assert round_trip(batch, device="cpu")["dense"].device.type == "cpu"


def test_tensors_go_where_the_reader_asks():
    assert round_trip(torch.ones(2), device="meta").device.type == "meta"
    assert round_trip(torch.ones(2), device=torch.device("meta")).device.type == "meta"


def test_a_device_that_this_torch_lacks_is_named():
    with pytest.raises(UnstorableValueError, match=r"'npu:0', .* no such device here"):
        tree.join({"$": "torch.device", "name": "npu:0"}, {}, source=SOURCE)


# ---- damage


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"key": "nothing"},
        {"key": None},
        {"key": "response", "dtype": "complex64", "shape": [2]},
        {"key": "response", "dtype": "float64", "shape": [10**12]},
        {"key": "response", "dtype": None, "shape": [3]},
        {"key": "response", "requires_grad": True},
        {"key": "response", "device": 1},
    ],
    ids=str,
)
def test_a_malformed_tensor_is_damage(entries):
    _, data = stored(torch.arange(3))
    with pytest.raises(CassetteCorruptError):
        tree.join({"$": "torch.tensor", **entries}, data, source=SOURCE)


def test_a_dtype_that_this_torch_lacks_is_named():
    with pytest.raises(UnstorableValueError, match=r"a torch.float2, .* has no such dtype"):
        tree.join({"$": "torch.dtype", "name": "float2"}, {}, source=SOURCE)


# ---- without torch


def test_tensors_are_arrays_where_no_torch_is_wanted():
    batch = [torch.arange(3), torch.tensor([1.5], dtype=torch.bfloat16), torch.tensor([1 + 2j])]
    integers, floats, complexes = plain(batch)
    assert integers.dtype == "int64"
    assert (floats.dtype, floats.tolist()) == ("float32", [1.5])
    assert (complexes.dtype, complexes.tolist()) == ("complex64", [1 + 2j])


@given(strategies.jagged() | strategies.strided_nested())
def test_nested_tensors_are_lists_of_rows_where_no_torch_is_wanted(tensor):
    rows = [plain(row.detach()) for row in tensor.unbind()]
    assert_same([row.copy() for row in rows], [row.copy() for row in plain(tensor)])
