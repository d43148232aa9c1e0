"""Codecs for torch's tensors, nested tensors, dtypes, devices and sizes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nested._internal.nested_tensor import NestedTensor  # what a jagged tensor is

from rollout_cassettes.cassette.safetensors_file import DTYPES, RawTensor
from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import AS_PLAIN, Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter, unstorable

_STORED = frozenset(getattr(torch, dtype.torch) for dtype in DTYPES.values())
"""The dtypes that every safetensors reader knows. Tensors of others are stored as their bytes."""

# ---- taking tensors apart


def _split_tensor(value: torch.Tensor, into: Splitter, path: str) -> dict[str, Any]:
    _refuse_exotic(value, path)
    if value.layout is torch.jagged:
        return {"jagged": _split_jagged(value, into, path), **_traits(value, into)}
    if value.is_nested:
        return {"nested": _split_nested(value, into, path), **_traits(value, into)}
    entry: dict[str, Any] = {"key": into.store(path, _identity(value), value, _bytes_of(value))}
    if value.dtype not in _STORED:
        entry |= {"dtype": _dtype_name(value.dtype), "shape": list(value.shape)}
    return entry | _traits(value, into)


def _refuse_exotic(value: torch.Tensor, path: str) -> None:
    if value.layout not in (torch.strided, torch.jagged):
        raise unstorable(value, path, f"its layout is {value.layout}")
    if value.is_quantized:
        raise unstorable(value, path, "it is quantized")
    if value.is_meta:
        raise unstorable(value, path, "it is on the meta device and has no data")


def _traits(value: torch.Tensor, into: Splitter) -> dict[str, Any]:
    """Return what is unusual about a tensor apart from its data."""
    traits: dict[str, Any] = {}
    if into.portable:
        return traits
    if value.device.type != "cpu":
        traits["device"] = str(value.device)
    if value.requires_grad:
        traits["requires_grad"] = True
    if isinstance(value, torch.nn.Parameter):
        traits["parameter"] = True
    return traits


def _identity(value: torch.Tensor) -> object:
    """Return what two tensors share exactly if they are the same view of the same memory."""
    if value.numel() == 0 or value.is_conj() or value.is_neg():
        return object()
    place = (value.device, value.data_ptr(), value.dtype)
    return ("torch", *place, tuple(value.shape), value.stride(), value.requires_grad)


def _bytes_of(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor's data, contiguous, on the CPU, in a dtype that safetensors knows."""
    data = value.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
    if data.dtype in _STORED:
        return data
    flat = data.as_strided((data.numel(),), (1,))  # one item may be contiguous at any stride
    return flat.view(torch.uint8)


def _split_jagged(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    """Take a jagged tensor apart; ``offsets`` that two tensors share stay shared."""
    lengths = value.lengths()
    return {
        "values": into.needed(value.values().detach(), path, "values"),
        "offsets": into.needed(value.offsets(), path, "offsets"),
        "lengths": None if lengths is None else into.needed(lengths, path, "lengths"),
        "ragged_dim": value._ragged_idx,  # noqa: SLF001 - torch has no public name for it
    }


def _split_nested(value: torch.Tensor, into: Splitter, path: str) -> dict[str, Any]:
    rows = value.detach().unbind()
    flat = [row.reshape(-1) for row in rows]
    values = torch.cat(flat) if flat else torch.empty(0, dtype=value.dtype, device=value.device)
    return {
        "values": into.needed(values, path, "values"),
        "shapes": [list(row.shape) for row in rows],
    }


# ---- putting tensors together


def _join_tensor(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    value = _join_data(node, joiner)
    if node.get("parameter"):
        return torch.nn.Parameter(value, requires_grad=bool(node.get("requires_grad")))
    if node.get("requires_grad") and not value.requires_grad:
        value.requires_grad_()
    return value


def _join_data(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    if "jagged" in node:
        return _join_jagged(node["jagged"], joiner)
    if "nested" in node:
        return _join_nested(node["nested"], joiner)
    key = node["key"]
    if key not in joiner.joined:
        value = _from_raw(joiner.tensors[key], node, joiner)
        joiner.joined[key] = value.to(device_of(node, joiner))
    joined: torch.Tensor = joiner.joined[key]
    return joined


def _from_raw(raw: RawTensor, node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    if "dtype" not in node:
        return _viewed(raw.data, getattr(torch, DTYPES[raw.dtype].torch), raw.shape)
    aligned = memoryview(bytearray(raw.data))  # bytes may lie anywhere, other items may not
    return _viewed(aligned, _dtype_from(node["dtype"], joiner), tuple(node["shape"]))


def _viewed(data: memoryview, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor that is this memory."""
    if data.nbytes:
        return torch.frombuffer(data, dtype=dtype).view(shape)
    if math.prod(shape):
        raise ValueError(f"there is no data for a tensor of shape {shape}")
    return torch.empty(shape, dtype=dtype)


def device_of(node: dict[str, Any], joiner: Joiner) -> torch.device:
    """Return where a value goes: where the reader asks, else where it was, else the CPU."""
    if joiner.device is not None:
        return torch.device(joiner.device)
    name = node.get("device", "cpu")
    kind, _, index = name.partition(":")  # torch.device() refuses kinds of other installations
    present = torch.accelerator.current_accelerator()
    if (
        present is None
        or kind != present.type
        or int(index or 0) >= torch.accelerator.device_count()
    ):
        return torch.device("cpu")
    return torch.device(name)


def _join_jagged(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    values, offsets = joiner.value(node["values"]), joiner.value(node["offsets"])
    lengths, ragged_dim = joiner.value(node["lengths"]), node["ragged_dim"]
    if ragged_dim not in range(1, values.dim() + 1):
        raise ValueError(f"a jagged tensor can't be ragged in dimension {ragged_dim!r}")
    _check_rows(offsets, lengths, values.shape[ragged_dim - 1])
    return torch.nested.nested_tensor_from_jagged(
        values, offsets=offsets, lengths=lengths, jagged_dim=ragged_dim
    )


def _check_rows(offsets: torch.Tensor, lengths: torch.Tensor | None, size: int) -> None:
    """Refuse rows that lie outside of the values: torch would read there."""
    starts = offsets[:-1]
    sizes = offsets.diff() if lengths is None else lengths
    integers = not offsets.is_floating_point() and not sizes.is_floating_point()
    if not (integers and offsets.dim() == 1 and len(offsets) and sizes.shape == starts.shape):
        raise ValueError("a jagged tensor has no list of rows")
    if not bool(((starts >= 0) & (sizes >= 0) & (starts + sizes <= size)).all()):
        raise ValueError("the rows of a jagged tensor lie outside of its values")


def _join_nested(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    values, shapes = joiner.value(node["values"]), node["shapes"]
    flat = values.split([math.prod(shape) for shape in shapes])
    rows = [row.view(shape) for row, shape in zip(flat, shapes, strict=True)]
    return torch.nested.as_nested_tensor(rows, dtype=values.dtype, device=values.device)


# ---- dtypes, devices, layouts and sizes


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype_from(name: str, joiner: Joiner) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if isinstance(dtype, torch.dtype):
        return dtype
    reason = f"torch {torch.__version__} has no such dtype"
    raise joiner.unavailable(f"torch.{name}", reason, "Upgrade torch.", AS_PLAIN)


def _device_from(name: str, joiner: Joiner) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError as error:
        reason = "torch knows no such device here"
        raise joiner.unavailable(f"torch.device {name!r}", reason, AS_PLAIN) from error


def _layout_from(name: str) -> torch.layout:
    layouts = {str(value): value for value in vars(torch).values() if type(value) is torch.layout}
    return layouts[f"torch.{name}"]


def _split_size(value: torch.Size, _into: Splitter, path: str) -> dict[str, Any]:
    if any(type(size) is not int for size in value):
        raise unstorable(value, path, "it is the size of a jagged tensor")
    return {"sizes": list(value)}


TENSOR = Codec("torch.tensor", _split_tensor, _join_tensor)

add(TENSOR, torch.Tensor, torch.nn.Parameter, NestedTensor)
add(
    Codec(
        "torch.dtype",
        lambda value, *_: {"name": _dtype_name(value)},
        lambda node, joiner: _dtype_from(node["name"], joiner),
    ),
    torch.dtype,
)
add(
    Codec(
        "torch.device",
        lambda value, *_: {"name": str(value)},
        lambda node, joiner: _device_from(node["name"], joiner),
    ),
    torch.device,
)
add(
    Codec(
        "torch.layout",
        lambda value, *_: {"name": str(value).removeprefix("torch.")},
        lambda node, _: _layout_from(node["name"]),
    ),
    torch.layout,
)
add(
    Codec("torch.size", _split_size, lambda node, _: torch.Size(node["sizes"])),
    torch.Size,
)
