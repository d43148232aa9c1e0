"""Codecs for torch's tensors, nested tensors, dtypes, devices and sizes."""

from __future__ import annotations

import math
from typing import Any

import torch

from rollout_cassettes.cassette.safetensors_file import RawTensor
from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add, unstorable

STORED_AS = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8",
    torch.uint16: "U16", torch.int16: "I16", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.uint32: "U32", torch.int32: "I32", torch.float32: "F32",
    torch.uint64: "U64", torch.int64: "I64", torch.float64: "F64",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip
"""The dtypes that every safetensors reader knows. Others are stored as their bytes."""

_DTYPES = {name: dtype for dtype, name in STORED_AS.items()}


def _split_tensor(value: torch.Tensor, into: Splitter, path: str) -> dict[str, Any]:
    if value.layout is torch.jagged:
        return {"jagged": _split_jagged(value, into, path), **_traits(value, into)}
    if value.is_nested:
        return {"nested": _split_nested(value, into, path), **_traits(value, into)}
    _refuse_exotic(value, path)
    entry: dict[str, Any] = {"key": into.store(path, _identity(value), value, _bytes_of(value))}
    if value.dtype not in STORED_AS:
        entry |= {"dtype": _dtype_name(value.dtype), "shape": list(value.shape)}
    return entry | _traits(value, into)


def _refuse_exotic(value: torch.Tensor, path: str) -> None:
    if value.layout is not torch.strided:
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
    if data.dtype in STORED_AS:
        return data
    return data.reshape(-1).view(torch.uint8)


def _split_jagged(value: Any, into: Splitter, path: str) -> dict[str, Any]:
    """Take a jagged tensor apart; ``offsets`` that two tensors share stay shared."""
    lengths = value.lengths()
    return {
        "values": into.child(value.values().detach(), path, "values"),
        "offsets": into.child(value.offsets(), path, "offsets"),
        "lengths": None if lengths is None else into.child(lengths, path, "lengths"),
        "ragged_dim": value._ragged_idx,  # noqa: SLF001 - torch has no public name for it
    }


def _split_nested(value: torch.Tensor, into: Splitter, path: str) -> dict[str, Any]:
    rows = value.detach().unbind()
    flat = [row.reshape(-1) for row in rows]
    values = torch.cat(flat) if flat else torch.empty(0, dtype=value.dtype, device=value.device)
    return {
        "values": into.child(values, path, "values"),
        "shapes": [list(row.shape) for row in rows],
    }


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
        value = _from_raw(joiner.raw(key), node)
        joiner.joined[key] = value.to(_device(node, joiner))
    joined: torch.Tensor = joiner.joined[key]
    return joined


def _from_raw(raw: RawTensor, node: dict[str, Any]) -> torch.Tensor:
    dtype, shape, data = _DTYPES[raw.dtype], raw.shape, raw.data
    if "dtype" in node:
        dtype, shape = _dtype_from(node["dtype"]), tuple(node["shape"])
        data = memoryview(bytearray(data))  # bytes lie anywhere; items want an aligned place
    if data.nbytes == 0:
        return torch.empty(_empty(shape), dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).view(shape)


def _empty(shape: tuple[int, ...]) -> tuple[int, ...]:
    if math.prod(shape):
        raise ValueError(f"there is no data for a tensor of shape {shape}")
    return shape


def _device(node: dict[str, Any], joiner: Joiner) -> torch.device:
    """Return where a tensor goes: where the reader asks, else where it was, else the CPU."""
    if joiner.device is not None:
        return torch.device(joiner.device)
    recorded = torch.device(node.get("device", "cpu"))
    if recorded.type == "cuda" and (recorded.index or 0) >= torch.cuda.device_count():
        return torch.device("cpu")
    if recorded.type == "mps" and not torch.backends.mps.is_available():
        return torch.device("cpu")
    return recorded if recorded.type in ("cpu", "cuda", "mps") else torch.device("cpu")


def _join_jagged(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    lengths = node["lengths"]
    return torch.nested.nested_tensor_from_jagged(
        joiner.value(node["values"]),
        offsets=joiner.value(node["offsets"]),
        lengths=None if lengths is None else joiner.value(lengths),
        jagged_dim=node["ragged_dim"],
    )


def _join_nested(node: dict[str, Any], joiner: Joiner) -> torch.Tensor:
    values = joiner.value(node["values"])
    sizes = [math.prod(shape) for shape in node["shapes"]]
    rows = [
        row.view(shape)
        for row, shape in zip(values.split(sizes), node["shapes"], strict=True)
    ]  # fmt: skip
    return torch.nested.as_nested_tensor(rows, dtype=values.dtype, device=values.device)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype_from(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch {torch.__version__} has no dtype {name!r}")  # noqa: TRY004
    return dtype


add(Codec("torch.tensor", _split_tensor, _join_tensor), torch.Tensor, torch.nn.Parameter)
add(
    Codec(
        "torch.dtype", lambda v, *_: {"name": _dtype_name(v)}, lambda n, _: _dtype_from(n["name"])
    ),
    torch.dtype,
)
add(
    Codec("torch.device", lambda v, *_: {"name": str(v)}, lambda n, _: torch.device(n["name"])),
    torch.device,
)
add(
    Codec("torch.size", lambda v, *_: {"sizes": list(v)}, lambda n, _: torch.Size(n["sizes"])),
    torch.Size,
)
add(
    Codec(
        "torch.layout",
        lambda v, *_: {"name": str(v).removeprefix("torch.")},
        lambda n, _: {str(v): v for v in vars(torch).values() if isinstance(v, torch.layout)}[
            f"torch.{n['name']}"
        ],
    ),
    torch.layout,
)

# A jagged tensor is an instance of a subclass, which is private to torch.
_JAGGED = type(torch.nested.nested_tensor([torch.zeros(1)], layout=torch.jagged))
add(Codec("torch.tensor", _split_tensor, _join_tensor), _JAGGED)
