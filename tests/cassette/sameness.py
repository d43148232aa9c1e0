"""Are two values the same: type by type, container by container, bit by bit?"""

from __future__ import annotations

import datetime as dt
import enum
import struct
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from types import MemberDescriptorType

import numpy as np
import torch
from tensordict import LazyStackedTensorDict, NonTensorData, TensorDictBase


def assert_same(left, right, path="value"):
    """Assert that two values are the same; ``path`` is where they stand."""
    assert type(left) is type(right), f"{path}: {type(left)} and {type(right)}"
    compare = next((compare for types, compare in _COMPARE if isinstance(left, types)), _objects)
    compare(left, right, path)


def _equal(left, right, path):
    assert left == right, f"{path}: {left!r} and {right!r}"


def _floats(left, right, path):
    _equal(struct.pack("<d", left), struct.pack("<d", right), path)


def _complexes(left, right, path):
    _floats(left.real, right.real, f"{path}.real")
    _floats(left.imag, right.imag, f"{path}.imag")


def _sequences(left, right, path):
    _equal(len(left), len(right), f"len({path})")
    if isinstance(left, deque):
        _equal(left.maxlen, right.maxlen, f"{path}.maxlen")
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        assert_same(one, other, f"{path}[{number}]")


def _mappings(left, right, path):
    _sequences(list(left), list(right), f"keys of {path}")
    if isinstance(left, defaultdict):
        assert left.default_factory is right.default_factory
    for number, (key, one) in enumerate(left.items()):
        where = f"{path}[{key!r}]" if type(key) is str else f"{path}: value {number}"
        assert_same(one, list(right.values())[number], where)


def _sets(left, right, path):
    def order(item):
        return (type(item).__name__, repr(item))

    _sequences(sorted(left, key=order), sorted(right, key=order), path)


def _moments(left, right, path):
    _equal(left.replace(tzinfo=None), right.replace(tzinfo=None), path)
    _equal(left.fold, right.fold, f"{path}.fold")
    _equal(repr(left.tzinfo), repr(right.tzinfo), f"{path}.tzinfo")


def _arrays(left, right, path):
    _equal(left.dtype, right.dtype, f"{path}.dtype")
    _equal(left.shape, right.shape, f"{path}.shape")
    assert right.flags.aligned
    assert right.flags.writeable
    if left.dtype.hasobject:
        _sequences(left.ravel().tolist(), right.ravel().tolist(), path)
    else:
        _equal(left.tobytes(), right.tobytes(), path)


def _scalars(left, right, path):
    _equal(left.dtype, right.dtype, f"{path}.dtype")
    _equal(left.tobytes(), right.tobytes(), path)


def _tensors(left, right, path):
    for name in ("layout", "dtype", "device", "requires_grad", "is_leaf", "is_nested"):
        _equal(getattr(left, name), getattr(right, name), f"{path}.{name}")
    if left.layout is torch.jagged:
        _equal(left._ragged_idx, right._ragged_idx, f"{path}.ragged_idx")
        for name in ("values", "offsets", "lengths"):
            assert_same(
                getattr(left.detach(), name)(), getattr(right.detach(), name)(), f"{path}.{name}"
            )
    elif left.is_nested:
        _sequences(left.detach().unbind(), right.detach().unbind(), path)
    else:
        _equal(left.shape, right.shape, f"{path}.shape")
        _equal(bits(left), bits(right), path)


def bits(tensor):
    """Return a dense tensor's bytes."""
    dense = tensor.detach().resolve_conj().resolve_neg().cpu().reshape(-1)
    unstrided = dense.clone(memory_format=torch.contiguous_format)
    return unstrided.as_strided(dense.shape, (1,)).view(torch.uint8).numpy().tobytes()


def _containers(left, right, path):
    for name in ("batch_size", "device", "is_locked"):
        _equal(getattr(left, name), getattr(right, name), f"{path}.{name}")
    _equal(_names(left), _names(right), f"{path}.names")
    if isinstance(left, NonTensorData):
        assert_same(left.data, right.data, f"{path}.data")
    elif isinstance(left, LazyStackedTensorDict):
        for name in ("stack_dim", "_td_dim_name"):
            _equal(getattr(left, name), getattr(right, name), f"{path}.{name}")
        _sequences(left.tensordicts, right.tensordicts, path)
    else:
        _mappings(dict(left.items()), dict(right.items()), path)


def _names(container):
    return list(container.names) if container._has_names() else None


def _objects(left, right, path):
    _mappings(attributes(left), attributes(right), path)


def attributes(value):
    """Return an object's attributes, from its slots and its ``__dict__``."""
    slots = {
        f"{base.__name__}.{name}": slot
        for base in type(value).__mro__
        for name, slot in vars(base).items()
        if isinstance(slot, MemberDescriptorType)
    }
    filled = {}
    for name, slot in slots.items():
        try:
            filled[name] = slot.__get__(value)
        except AttributeError:
            continue
    return {**filled, **getattr(value, "__dict__", {})}


_COMPARE = [
    (enum.Enum, lambda left, right, path: _equal(left is right, True, path)),
    (np.generic, _scalars),  # before float: np.float64 is one
    (float, _floats),
    (complex, _complexes),
    ((dt.datetime, dt.time), _moments),
    ((dt.tzinfo, Decimal), lambda left, right, path: _equal(repr(left), repr(right), path)),
    (np.ndarray, _arrays),
    (torch.Tensor, _tensors),
    ((TensorDictBase, NonTensorData), _containers),
    ((list, tuple, deque), _sequences),
    ((dict, OrderedDict), _mappings),
    ((set, frozenset), _sets),
    (object, lambda *arguments: _objects_or_equal(*arguments)),  # noqa: PLW0108 - defined below
]


def _objects_or_equal(left, right, path):
    if hasattr(type(left), "__dataclass_fields__"):
        _objects(left, right, path)
    else:
        _equal(left, right, path)
