"""Codecs for tensordict's containers."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import (
    LazyStackedTensorDict,
    MemoryMappedTensor,
    NonTensorData,
    NonTensorStack,
    TensorDict,
)
from tensordict.utils import LinkedList

from rollout_cassettes.cassette.tree import torch as tensors
from rollout_cassettes.cassette.tree.codec import Codec, add
from rollout_cassettes.cassette.tree.joiner import Joiner
from rollout_cassettes.cassette.tree.splitter import Splitter

# ---- what containers have in common


def _batch_of(value: Any, into: Splitter) -> dict[str, Any]:
    """Return a container's batch size, and its names, device and lock where it has them."""
    batch: dict[str, Any] = {"batch_size": list(value.batch_size)}
    if value._has_names():  # noqa: SLF001 - asking for .names would make a list of None
        batch["names"] = list(value.names)
    if value.device is not None and not into.portable:
        batch["device"] = str(value.device)
    return {**batch, **_lock_of(value, into)}


def _lock_of(value: Any, into: Splitter) -> dict[str, Any]:
    return {"locked": True} if value.is_locked and not into.portable else {}


def _batch_from(node: dict[str, Any], joiner: Joiner) -> dict[str, Any]:
    device = tensors.device_of(node, joiner) if "device" in node else None
    return {"batch_size": node["batch_size"], "names": node.get("names"), "device": device}


def _finish(value: Any, node: dict[str, Any]) -> Any:
    return value.lock_() if node.get("locked") else value


# ---- dicts of tensors


def _split_tensordict(value: TensorDict, into: Splitter, path: str) -> dict[str, Any]:
    fields = {name: into.child(field, path, name) for name, field in value.items()}
    return {**_batch_of(value, into), "fields": fields}


def _join_tensordict(node: dict[str, Any], joiner: Joiner) -> TensorDict:
    fields = {name: joiner.value(field) for name, field in node["fields"].items()}
    return _finish(TensorDict(fields, **_batch_from(node, joiner)), node)


# ---- stacks


def _split_stack(value: LazyStackedTensorDict, into: Splitter, path: str) -> dict[str, Any]:
    items = [into.needed(item, path, number) for number, item in enumerate(value.tensordicts)]
    stack = {"stack_dim": value.stack_dim, "items": items}
    if not items:
        stack["batch_size"] = list(value.batch_size)
    return {**stack, **_stack_name_of(value), **_lock_of(value, into)}


def _stack_name_of(value: LazyStackedTensorDict) -> dict[str, Any]:
    name = value._td_dim_name  # noqa: SLF001 - .names leaves it out where the items have none
    return {"stack_dim_name": name} if name else {}


def _join_stack(node: dict[str, Any], joiner: Joiner) -> LazyStackedTensorDict:
    return _stacked(LazyStackedTensorDict, node, joiner)


def _stacked(cls: type, node: dict[str, Any], joiner: Joiner) -> Any:
    items = [joiner.value(item) for item in node["items"]]
    options = {"stack_dim": node["stack_dim"], "stack_dim_name": node.get("stack_dim_name")}
    if not items:
        size = node["batch_size"]
        options["batch_size"] = size[: node["stack_dim"]] + size[node["stack_dim"] + 1 :]
    return _finish(cls(*items, **options), node)


# ---- what is no tensor


def _split_data(value: NonTensorData, into: Splitter, path: str) -> dict[str, Any]:
    return {**_batch_of(value, into), "data": into.child(value.data, path, "data")}


def _join_data(node: dict[str, Any], joiner: Joiner) -> NonTensorData:
    data = joiner.value(node["data"])
    return _finish(NonTensorData(data, **_batch_from(node, joiner)), node)


def _split_data_stack(value: NonTensorStack, into: Splitter, path: str) -> dict[str, Any]:
    """Take a stack of non-tensors apart; the common one-dimensional stack is kept as a list."""
    bare = all(_is_bare(item, into) for item in value.tensordicts)
    if not value.tensordicts or not bare or value.stack_dim != 0 or _lock_of(value, into):
        return _split_stack(value, into, path)
    data = into.children([item.data for item in value.tensordicts], path)
    return {"data": data, **_stack_name_of(value)}


def _is_bare(item: Any, into: Splitter) -> bool:
    return type(item) is NonTensorData and _batch_of(item, into) == {"batch_size": []}


def _join_data_stack(node: dict[str, Any], joiner: Joiner) -> NonTensorStack:
    if "data" not in node:
        return _stacked(NonTensorStack, node, joiner)
    return _bare_stack(joiner.value(node["data"]), node.get("stack_dim_name"))


def _bare_stack(values: list[Any], name: str | None) -> NonTensorStack:
    """Make a one-dimensional stack by filling one in: in an eighth of its constructor's time.

    It has an item for each trajectory, so that making these is most of what reading it takes.
    """
    stack = NonTensorStack(None, stack_dim_name=name)
    bare = vars(stack.tensordicts[0])
    items = []
    for value in values:
        item = NonTensorData.__new__(NonTensorData)
        data = {**bare["_non_tensordict"], "data": value}
        vars(item).update(bare, _tensordict=bare["_tensordict"].empty(), _non_tensordict=data)
        items.append(item)
    vars(stack).update(tensordicts=items, _batch_size=torch.Size([len(items)]))
    return stack


def _unlinked(values: list[Any]) -> LinkedList:
    """Make the list that indexing a batch gives, without the batch that it would write to."""
    linked = LinkedList(td=TensorDict())  # before tensordict 0.15 there is none without a batch
    linked.extend(values)  # which unlinks it
    return linked


add(Codec("tensordict.TensorDict", _split_tensordict, _join_tensordict), TensorDict)
add(Codec("tensordict.LazyStackedTensorDict", _split_stack, _join_stack), LazyStackedTensorDict)
add(Codec("tensordict.NonTensorData", _split_data, _join_data), NonTensorData)
add(Codec("tensordict.NonTensorStack", _split_data_stack, _join_data_stack), NonTensorStack)
add(
    Codec(
        "tensordict.LinkedList",
        lambda value, into, path: {"items": into.children(value, path)},
        lambda node, joiner: _unlinked(joiner.value(node["items"])),
    ),
    LinkedList,
)
add(tensors.TENSOR, MemoryMappedTensor)
