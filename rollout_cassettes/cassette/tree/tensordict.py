"""Codecs for tensordict's containers."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict
from tensordict.utils import LinkedList

from rollout_cassettes.cassette.tree.codec import Codec, Joiner, Splitter, add


def _batch_of(value: Any) -> dict[str, Any]:
    """Return a container's batch size, and its names, device and lock where it has them."""
    batch: dict[str, Any] = {"batch_size": list(value.batch_size)}
    if value._has_names():  # noqa: SLF001 - asking for .names would make a list of None
        batch["names"] = list(value.names)
    if value.device is not None:
        batch["device"] = str(value.device)
    if value.is_locked:
        batch["locked"] = True
    return batch


def _device_of(node: dict[str, Any], joiner: Joiner) -> torch.device | None:
    """Return the device of a restored container: None where the recorded one can't be had."""
    if "device" not in node:
        return None
    recorded = torch.device(node["device"])
    if joiner.device is not None:
        return torch.device(joiner.device)
    missing = recorded.type == "cuda" and (recorded.index or 0) >= torch.cuda.device_count()
    return torch.device("cpu") if missing else recorded


def _finish(value: Any, node: dict[str, Any]) -> Any:
    return value.lock_() if node.get("locked") else value


def _split_tensordict(value: TensorDict, into: Splitter, path: str) -> dict[str, Any]:
    fields = {name: into.child(field, path, name) for name, field in value.items()}
    return {**_batch_of(value), "fields": fields}


def _join_tensordict(node: dict[str, Any], joiner: Joiner) -> TensorDict:
    value = TensorDict(
        {name: joiner.value(field) for name, field in node["fields"].items()},
        batch_size=node["batch_size"],
        names=node.get("names"),
        device=_device_of(node, joiner),
    )
    return _finish(value, node)


def _split_lazy(value: LazyStackedTensorDict, into: Splitter, path: str) -> dict[str, Any]:
    stack = {"stack_dim": value.stack_dim, "items": into.children(value.tensordicts, path)}
    names = {"stack_dim_name": value._td_dim_name} if value._td_dim_name else {}  # noqa: SLF001
    return {**stack, **names, **({"locked": True} if value.is_locked else {})}


def _join_lazy(node: dict[str, Any], joiner: Joiner) -> LazyStackedTensorDict:
    items = [joiner.value(item) for item in node["items"]]
    name = node.get("stack_dim_name")
    stack = LazyStackedTensorDict(*items, stack_dim=node["stack_dim"], stack_dim_name=name)
    return _finish(stack, node)


def _split_data(value: NonTensorData, into: Splitter, path: str) -> dict[str, Any]:
    return {**_batch_of(value), "data": into.child(value.data, path, "data")}


def _join_data(node: dict[str, Any], joiner: Joiner) -> NonTensorData:
    value = NonTensorData(
        joiner.value(node["data"]),
        batch_size=node["batch_size"],
        names=node.get("names"),
        device=_device_of(node, joiner),
    )
    return _finish(value, node)


def _split_stack(value: NonTensorStack, into: Splitter, path: str) -> dict[str, Any]:
    """Take a stack of non-tensors apart; the common one-dimensional stack is kept as a list."""
    items = value.tensordicts
    if all(type(item) is NonTensorData and not _batch_of(item)["batch_size"] for item in items):
        plain = all(_batch_of(item) == {"batch_size": []} for item in items)
        if plain and value.stack_dim == 0 and not value.is_locked:
            return {"data": into.children([item.data for item in items], path)}
    return _split_lazy(value, into, path)


def _join_stack(node: dict[str, Any], joiner: Joiner) -> NonTensorStack:
    if "data" in node:
        items = [NonTensorData(item) for item in joiner.value(node["data"])]
        return NonTensorStack(*items)
    items = [joiner.value(item) for item in node["items"]]
    return _finish(NonTensorStack(*items, stack_dim=node["stack_dim"]), node)


add(Codec("tensordict.TensorDict", _split_tensordict, _join_tensordict), TensorDict)
add(Codec("tensordict.LazyStackedTensorDict", _split_lazy, _join_lazy), LazyStackedTensorDict)
add(Codec("tensordict.NonTensorData", _split_data, _join_data), NonTensorData)
add(Codec("tensordict.NonTensorStack", _split_stack, _join_stack), NonTensorStack)
add(
    Codec(
        "tensordict.LinkedList",
        lambda v, into, path: {"items": into.children(v, path)},
        lambda node, joiner: LinkedList(joiner.value(node["items"])),
    ),
    LinkedList,
)
