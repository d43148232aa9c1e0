"""Hypothesis strategies for what a batch may hold: every type that a cassette carries."""

from __future__ import annotations

import datetime as dt
import pathlib
import string
import struct
import zoneinfo
from collections import OrderedDict, defaultdict, deque

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict

from tests.cassette import samples

# ---- Python's own types

texts = st.text(max_size=8) | st.text(st.characters(categories=["Cs", "Ll"]), max_size=4)
names = st.text(string.ascii_lowercase + "/~$#. ", max_size=4)

floats = st.floats() | st.binary(min_size=8, max_size=8).map(
    lambda data: struct.unpack("<d", data)[0]
)
integers = (
    st.integers() | st.integers(-(2**200), 2**200) | st.sampled_from([2**63, 2**64, -(2**63) - 1])
)

zones = st.one_of(
    st.none(),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]).map(zoneinfo.ZoneInfo),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))),
    st.builds(dt.timezone, st.just(dt.timedelta(hours=1)), texts),
)

paths = st.builds(
    lambda cls, parts: cls(*parts),
    st.sampled_from([pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath]),
    st.lists(st.text(st.characters(categories=["Ll", "Cs", "Po"]), max_size=4), max_size=3),
)

enums = st.sampled_from(
    [
        *samples.Colour,
        *samples.Priority,
        *samples.Role,
        samples.Permission(0),
        samples.Permission.READ | samples.Permission.RUN,
        samples.Bits.ONE | samples.Bits.TWO,
        samples.Unstorable.MEMBER,
    ]
)

#: Values that can be keys of a mapping, or in a set.
hashables = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    floats,
    st.builds(complex, floats, floats),
    texts,
    st.binary(max_size=8),
    enums,
    paths,
    st.dates(),
    st.timedeltas(),
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.builds(
        lambda time, fold: time.replace(fold=fold), st.times(timezones=zones), st.integers(0, 1)
    ),
    zones,
    st.uuids(),
    st.decimals().filter(lambda number: not number.is_snan()),  # which has no hash
    st.fractions(),
    st.builds(range, integers, integers, st.integers(1, 9)),
    st.just(...),
)

leaves = st.one_of(
    hashables,
    st.decimals(),
    st.binary(max_size=8).map(bytearray),
    st.builds(slice, integers, integers),
)

# ---- numpy


def _views(array):
    """Return other arrays of the same values: not contiguous, read-only, reversed, Fortran-ordered."""
    read_only = array.copy()
    read_only.flags.writeable = False
    doubled = np.repeat(array, 2, axis=0)[::2] if array.ndim else array
    reversed_ = array[::-1][::-1] if array.ndim else array
    return [array, np.asfortranarray(array), read_only, doubled, array.T, reversed_]


_dtypes = st.one_of(
    npst.scalar_dtypes(),
    npst.byte_string_dtypes(),
    npst.unicode_string_dtypes(),
    npst.array_dtypes(max_size=3, allow_subarrays=True),
    npst.nested_dtypes(max_itemsize=64),
    st.sampled_from(["<U0", "S0", "g", "G", "F", ">c16", "V3"]).map(np.dtype),
)


@st.composite
def arrays(draw):
    """Draw an array of any dtype, shape and layout, with any bits."""
    dtype = draw(_dtypes.filter(lambda dtype: not dtype.hasobject))
    shape = draw(npst.array_shapes(min_dims=0, min_side=0, max_side=3, max_dims=3))
    size = int(np.prod(shape)) * dtype.itemsize
    if dtype.itemsize == 0 or dtype.kind == "b":
        return np.ndarray(shape, dtype) if dtype.itemsize == 0 else np.zeros(shape, dtype)
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype.kind == "U":
        array = np.full(shape, draw(st.text(max_size=3)), dtype)
    else:
        array = (
            np.frombuffer(bytearray(data), dtype).reshape(shape) if size else np.zeros(shape, dtype)
        )
    return draw(st.sampled_from(_views(array)))


scalars = st.one_of(
    arrays()
    .filter(lambda array: array.size and array.dtype.names is None and array.dtype.subdtype is None)
    .map(lambda array: array.ravel()[0])
    .filter(lambda scalar: isinstance(scalar, np.generic)),
    st.builds(np.str_, texts),
    st.builds(np.bytes_, st.binary(max_size=4)),
)

dtypes = _dtypes.filter(lambda dtype: dtype.subdtype is None)


@st.composite
def object_arrays(draw, items):
    """Draw an array of objects."""
    shape = draw(npst.array_shapes(min_dims=0, min_side=0, max_side=2, max_dims=2))
    array = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        array[index] = draw(items)
    return array


# ---- torch

TORCH_DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
    torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex32, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip

_shapes = st.lists(st.integers(0, 3), max_size=3)


@st.composite
def dense(draw, dtypes=tuple(TORCH_DTYPES), shapes=_shapes):
    """Draw a contiguous tensor with any bits."""
    dtype, shape = draw(st.sampled_from(dtypes)), draw(shapes)
    size = int(np.prod(shape)) * dtype.itemsize
    data = bytearray(draw(st.binary(min_size=size, max_size=size)))
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool:
        data = bytearray(byte & 1 for byte in data)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).view(shape)


def _twisted(tensor):
    """Return views that are not contiguous, or not what their memory says."""
    views = [tensor, tensor.mT if tensor.dim() > 1 else tensor]
    if tensor.dim():
        views += (
            [tensor[1:], tensor[::2], tensor[:1].expand(3, *tensor.shape[1:])]
            if len(tensor)
            else []
        )
    if tensor.dtype in (torch.complex64, torch.complex128):
        views += [tensor.conj(), tensor.conj().imag]
    return views


@st.composite
def tensors(draw):
    """Draw a dense tensor: any dtype, any view, with or without gradients."""
    tensor = draw(st.sampled_from(_twisted(draw(dense()))))
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return tensor
    kind = draw(st.sampled_from(["tensor", "tensor", "leaf", "parameter", "frozen parameter"]))
    if kind == "leaf":
        return tensor.detach().requires_grad_()
    if kind == "tensor":
        return tensor
    return torch.nn.Parameter(tensor, requires_grad=kind == "parameter")


@st.composite
def jagged(draw, rows=None):
    """Draw a jagged tensor: with holes or without, ragged in the first dimension or the second."""
    lengths = draw(
        st.lists(st.integers(0, 3), min_size=1, max_size=3)
        if rows is None
        else st.lists(st.integers(0, 3), min_size=rows, max_size=rows)
    )
    offsets = torch.tensor(
        [0, *np.cumsum(lengths)], dtype=draw(st.sampled_from([torch.int64, torch.int32]))
    )
    dtype = draw(
        st.sampled_from([torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64])
    )
    inner = draw(st.sampled_from([[], [2], [2, 1]]))
    values = draw(dense([dtype], st.just([sum(lengths), *inner])))
    holes = draw(st.none() | st.just(torch.tensor(lengths, dtype=offsets.dtype) // 2))
    tensor = torch.nested.nested_tensor_from_jagged(values, offsets=offsets, lengths=holes)
    if inner and draw(st.booleans()):
        tensor = tensor.transpose(1, 2)
    if tensor.is_floating_point() and draw(st.booleans()):
        tensor = tensor.detach().requires_grad_()
    return tensor


@st.composite
def strided_nested(draw):
    """Draw a strided nested tensor."""
    dtype = draw(
        st.sampled_from([torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64])
    )
    dims, rows = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    shapes = [draw(st.lists(st.integers(0, 3), min_size=dims, max_size=dims)) for _ in range(rows)]
    parts = [draw(dense([dtype], st.just(shape))) for shape in shapes]
    tensor = torch.nested.nested_tensor(parts, dtype=dtype)
    return tensor.requires_grad_() if dtype is torch.float32 and draw(st.booleans()) else tensor


torch_values = st.one_of(
    st.sampled_from(TORCH_DTYPES),
    st.sampled_from([torch.device("cpu"), torch.device("cuda"), torch.device("cuda:3")]),
    st.sampled_from([torch.strided, torch.jagged, torch.sparse_coo]),
    st.builds(torch.Size, st.lists(st.integers(0, 5), max_size=3)),
)

# ---- tensordict


@st.composite
def tensordicts(draw, items, rows=None, depth=2):
    """Draw a TensorDict of ``rows`` rows, nested up to ``depth`` levels."""
    rows = draw(st.integers(1, 3)) if rows is None else rows
    columns = {
        name: draw(_columns(items, rows, depth))
        for name in draw(st.lists(names, max_size=3, unique=True))
    }
    device = draw(st.sampled_from([None, "cpu"]))
    batch = TensorDict(
        columns, batch_size=[rows], names=draw(st.sampled_from([None, ["row"]])), device=device
    )
    return batch.lock_() if draw(st.booleans()) else batch


@st.composite
def _columns(draw, items, rows, depth):
    kinds = ["dense", "jagged", "one", "each", *(["nested", "lazy"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "dense":
        return draw(
            dense(shapes=st.lists(st.integers(0, 2), max_size=2).map(lambda rest: [rows, *rest]))
        )
    if kind == "jagged":
        return draw(jagged(rows=rows))
    if kind == "one":
        return NonTensorData(draw(items), batch_size=[rows])
    if kind == "each":
        return NonTensorStack(*[NonTensorData(draw(items)) for _ in range(rows)])
    if kind == "nested":
        return draw(tensordicts(items, rows=rows, depth=depth - 1))
    return draw(lazy_stacks(items, rows=rows))


@st.composite
def lazy_stacks(draw, items, rows=None):
    """Draw a lazy stack, whose items may have other shapes."""
    rows = draw(st.integers(1, 3)) if rows is None else rows
    keys = draw(st.lists(names, max_size=2, unique=True))
    stack = [
        TensorDict({key: draw(dense() | items.map(NonTensorData)) for key in keys})
        for _ in range(rows)
    ]
    name = draw(st.sampled_from([None, "row"]))
    return LazyStackedTensorDict(*stack, stack_dim=0, stack_dim_name=name)


@st.composite
def non_tensor_stacks(draw, items):
    """Draw a stack of non-tensors, of one dimension or two."""
    rows, columns = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    if not columns:
        return NonTensorStack(*[NonTensorData(draw(items)) for _ in range(rows)])
    stacks = [
        NonTensorStack(*[NonTensorData(draw(items)) for _ in range(columns)]) for _ in range(rows)
    ]
    return NonTensorStack(*stacks)


# ---- everything


def containers(items):
    """Draw a container of these items."""
    lists = st.lists(items, max_size=3)
    pairs = st.lists(st.tuples(hashables, items), max_size=3)
    return st.one_of(
        lists,
        lists.map(tuple),
        st.builds(deque, lists, st.none() | st.integers(0, 4)),
        st.dictionaries(names, items, max_size=3),
        pairs.map(dict),
        pairs.map(OrderedDict),
        st.builds(defaultdict, st.sampled_from([None, list, int]), pairs.map(dict)),
        st.sets(hashables, max_size=3),
        st.frozensets(hashables, max_size=3),
        st.builds(samples.Point, items, items),
        items.map(samples.Turn),
        st.builds(samples.Sample, items, items),
        items.map(samples.Frozen),
        st.builds(samples.Slotted, items, items),
        items.map(samples.Late),
        object_arrays(items),
    )


arrays_and_tensors = st.one_of(
    arrays(), scalars, dtypes, tensors(), jagged(), strided_nested(), torch_values
)

#: Trees of everything but tensordict's containers, which hold them below.
trees = st.recursive(leaves | arrays_and_tensors, containers, max_leaves=8)

batches = st.one_of(
    trees,
    tensordicts(trees),
    lazy_stacks(trees),
    non_tensor_stacks(trees),
    trees.map(NonTensorData),
    st.lists(tensordicts(leaves), max_size=2),
)
