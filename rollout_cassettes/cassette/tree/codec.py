"""The walk over a tree, and the table of codecs that it asks.

A codec knows how one kind of value becomes a node and back. The codecs of a library are in the
module of this package that is named for it, and are loaded when a value of that library, or a
node of its kind, is first met: so a tree of plain Python needs neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rollout_cassettes.errors import CassetteCorruptError, UnstorableValueError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch

    from rollout_cassettes.cassette.safetensors_file import RawTensor

KIND = "$"
MAX_DEPTH = 128
"""How deep a tree may nest. Twice this many msgpack levels is still within what readers allow."""

_AS_THEY_ARE = (type(None), bool, float, bytes)
_INT_RANGE = range(-(2**63), 2**64)
_LIBRARIES = {
    "numpy": "rollout_cassettes.cassette.tree.numpy",
    "torch": "rollout_cassettes.cassette.tree.torch",
    "tensordict": "rollout_cassettes.cassette.tree.tensordict",
    "PIL": "rollout_cassettes.cassette.tree.pillow",
}
"""The root module of a value's type, or the first part of a node's kind -> who knows it."""


class Codec(NamedTuple):
    """How one kind of value becomes a node and back.

    Attributes:
        kind: The node's ``$`` entry; ``library.kind`` for the types of a library.
        split: Gives the node's other entries for a value at a path.
        join: Gives the value for a node.
    """

    kind: str
    split: Callable[[Any, Splitter, str], dict[str, Any]]
    join: Callable[[dict[str, Any], Joiner], Any]


class Omission(NamedTuple):
    """A value that was left out of a recording because no codec knows its type."""

    path: str
    type_name: str
    reason: str


class Omitted(NamedTuple):
    """Stands where a value was left out, for those who read a cassette by hand."""

    type_name: str
    reason: str


class Split(NamedTuple):
    """A tree taken apart.

    Attributes:
        skeleton: All that is not tensor data, ready for msgpack.
        tensors: Tensor data by path; contiguous tensors on the CPU.
        omissions: What could not be stored.
    """

    skeleton: Any
    tensors: dict[str, torch.Tensor]
    omissions: list[Omission]


_by_type: dict[type, Codec] = {}
_by_kind: dict[str, Codec] = {}
_by_family: list[tuple[Callable[[type], bool], Codec]] = []


def add(codec: Codec, *types: type, family: Callable[[type], bool] | None = None) -> None:
    """Enter a codec into the table, for exact types or for a family of types."""
    _by_kind[codec.kind] = codec
    _by_type.update(dict.fromkeys(types, codec))
    if family is not None:
        _by_family.append((family, codec))


def register_codec(
    cls: type,
    encode: Callable[[Any], Any],
    decode: Callable[[Any], Any],
    *,
    name: str | None = None,
) -> None:
    """Teach the library to store values of a type of yours.

    The type must be registered both where cassettes are recorded and where they are replayed.

    Args:
        cls: The type; its subclasses are not included.
        encode: Turns a value into a tree of storable values, such as a dict of tensors.
        decode: Turns that tree into an equal value.
        name: What the type is called in the cassette; by default ``module.Class``.

    Raises:
        ValueError: If another type was registered under that name.
    """
    name = name or type_name(cls)
    kind = f"custom.{name}"
    known = _by_kind.get(kind)
    if known is not None and _by_type.get(cls) is not known:
        raise ValueError(f"another type is registered as {name!r}: give this one another name=")

    def split_custom(value: Any, into: Splitter, path: str) -> dict[str, Any]:
        return {"data": into.node(encode(value), path)}

    def join_custom(node: dict[str, Any], joiner: Joiner) -> Any:
        return decode(joiner.value(node["data"]))

    add(Codec(kind, split_custom, join_custom), cls)


def split(value: Any, *path: object, strict: bool = False, portable: bool = False) -> Split:
    """Take a value apart into a skeleton and named tensors.

    Args:
        value: Any tree of storable values.
        *path: The first parts of every tensor's path, such as ``"response"``.
        strict: Raise at the first value that can't be stored, instead of listing it.
        portable: Leave out what does not belong to the values themselves: on which device they
            are, whether they require gradients, and what shares its memory with what.

    Raises:
        UnstorableValueError: If ``strict`` and a value is of a type that no codec knows.
    """
    splitter = Splitter(strict=strict, portable=portable)
    skeleton = splitter.node(value, "/".join(map(escape, path)))
    return Split(skeleton, splitter.tensors, splitter.omissions)


def join(
    skeleton: Any,
    tensors: Mapping[str, RawTensor],
    *,
    source: Path,
    device: str | torch.device | None = None,
    strict: bool = False,
) -> Any:
    """Put a value together again, in the container types that were recorded.

    Args:
        skeleton: What :func:`split` returned.
        tensors: Tensor data by path.
        source: The file that the skeleton comes from, for messages.
        device: Where tensors go; None for the device they were recorded on, or the CPU where
            that one is missing.
        strict: Raise where a value was left out, instead of putting :class:`Omitted` there.

    Raises:
        CassetteCorruptError: If the skeleton is not one that :func:`split` makes.
        UnstorableValueError: If ``strict`` and a value was left out.
    """
    joiner = Joiner(tensors, source=source, device=device, strict=strict)
    with joiner.reporting_damage():
        return joiner.value(skeleton)


def type_name(cls: type) -> str:
    """Return ``module.Class``, or ``Class`` for a builtin."""
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )


def escape(part: object) -> str:
    """Make one part of a path: ``/`` would start a new part, so it becomes ``~1`` and ``~`` ``~0``."""
    text = str(part).encode("utf-8", "backslashreplace").decode()
    return text.replace("~", "~0").replace("/", "~1")


@dataclass
class Splitter:
    """One walk that takes a tree apart.

    Attributes:
        strict: Raise at the first value that can't be stored.
        portable: Leave out devices, gradients, and shared memory.
        tensors: The tensor data found so far, by path.
        omissions: The values that could not be stored so far.
    """

    strict: bool = False
    portable: bool = False
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    omissions: list[Omission] = field(default_factory=list)
    _open: list[int] = field(default_factory=list)
    _stored: dict[object, tuple[str, object]] = field(default_factory=dict)

    def node(self, value: Any, path: str) -> Any:
        """Return the skeleton of a value; its tensors are stored under ``path``."""
        cls = type(value)
        if cls in _AS_THEY_ARE or (cls is int and value in _INT_RANGE):
            return value
        if cls is str:
            return value
        with self._entered(value, path):
            try:
                return self._container(value, cls, path)
            except UnstorableValueError as error:
                if self.strict:
                    raise
                return self._omit(error)

    def child(self, value: Any, path: str, part: object) -> Any:
        """Return the skeleton of a part of the value at ``path``."""
        return self.node(value, f"{path}/{escape(part)}")

    def children(self, values: Any, path: str) -> list[Any]:
        """Return the skeletons of the parts of a sequence."""
        return [self.child(value, path, number) for number, value in enumerate(values)]

    def store(self, path: str, identity: object, owner: object, data: torch.Tensor) -> str:
        """Keep tensor data and return its key; the same memory is kept once.

        Args:
            path: The key it should get; a number is added where it is taken.
            identity: Equal for two tensors of the same memory and layout.
            owner: Kept alive during the walk, so that its memory is not given to another tensor.
            data: The data to keep.
        """
        if identity in self._stored and not self.portable:
            return self._stored[identity][0]
        key, number = path, 2
        while key in self.tensors:
            key, number = f"{path}#{number}", number + 1
        self.tensors[key] = data
        self._stored[identity] = (key, owner)
        return key

    def _container(self, value: Any, cls: type, path: str) -> Any:
        if cls is list:
            return self.children(value, path)
        if cls is dict and KIND not in value and all(type(key) is str for key in value):
            return {key: self.child(item, path, key) for key, item in value.items()}
        codec = _codec_of(cls)
        if codec is None:
            raise unstorable(value, path, "no codec knows this type")
        return {KIND: codec.kind, **codec.split(value, self, path)}

    def _omit(self, error: UnstorableValueError) -> dict[str, Any]:
        omission = Omission(error.location, error.type_name, error.reason)
        self.omissions.append(omission)
        return {KIND: "omitted", "type": omission.type_name, "reason": omission.reason}

    @contextmanager
    def _entered(self, value: Any, path: str) -> Iterator[None]:
        if id(value) in self._open:
            raise unstorable(value, path, "it contains itself")
        if len(self._open) >= MAX_DEPTH:
            raise unstorable(value, path, f"it is nested more than {MAX_DEPTH} levels deep")
        self._open.append(id(value))
        try:
            yield
        finally:
            self._open.pop()


class Joiner:
    """One walk that puts a tree together."""

    def __init__(
        self,
        tensors: Mapping[str, RawTensor],
        *,
        source: Path,
        device: str | torch.device | None = None,
        strict: bool = False,
    ) -> None:
        self.tensors = tensors
        self.source = source
        self.device = device
        self.strict = strict
        self.joined: dict[str, Any] = {}
        self._path: list[str] = []

    def value(self, node: Any) -> Any:
        """Return the value that a skeleton stands for."""
        if type(node) is list:
            return [self.value(item) for item in node]
        if type(node) is not dict:
            return node
        if KIND not in node:
            return {key: self.value(item) for key, item in node.items()}
        kind = node[KIND]
        if kind == "omitted":
            return self._omitted(node)
        codec = _codec_for(kind)
        if codec is None:
            raise self._unknown(kind)
        return codec.join(node, self)

    def raw(self, key: str) -> RawTensor:
        """Return the stored data under a key."""
        return self.tensors[key]

    def corrupt(self, what: str) -> CassetteCorruptError:
        """Return the error for a skeleton that can't be right."""
        return CassetteCorruptError(
            f"{self.source} is damaged: {what}.",
            fixes=["Fetch the cassette again from where it came.", "Record the step again."],
            path=self.source,
        )

    def not_imported(self, name: str) -> UnstorableValueError:
        """Return the error for a class that this process has not imported."""
        module = name.partition(":")[0]
        return UnstorableValueError(
            f"{self.source} holds a {name}, which this process has not imported, and a cassette "
            "never imports anything by itself.",
            fixes=[
                f"Run `import {module}` first.",
                "Read it with numpy=True: as plain containers.",
            ],
            location=str(self.source),
            type_name=name,
            reason="its class is not imported",
        )

    @contextmanager
    def reporting_damage(self) -> Iterator[None]:
        """Turn what a malformed skeleton makes Python raise into a :class:`CassetteCorruptError`."""
        try:
            yield
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            RecursionError,
        ) as error:
            raise self.corrupt(f"its contents don't make sense ({error!r})") from error

    def _unknown(self, kind: Any) -> CassetteCorruptError | UnstorableValueError:
        if isinstance(kind, str) and kind.startswith("custom."):
            name = kind.removeprefix("custom.")
            return UnstorableValueError(
                f"{self.source} holds a {name}, and no codec is registered under that name here.",
                fixes=[
                    f"Call rollout_cassettes.register_codec(..., name={name!r}) before reading."
                ],
                location=str(self.source),
                type_name=name,
                reason="no codec is registered for it",
            )
        return self.corrupt(f"it holds a node of the unknown kind {kind!r}")

    def _omitted(self, node: dict[str, Any]) -> Omitted:
        omitted = Omitted(node["type"], node["reason"])
        if not self.strict:
            return omitted
        raise UnstorableValueError(
            f"{self.source} was recorded without a value of type {omitted.type_name} "
            f"({omitted.reason}), so it can't be replayed.",
            fixes=[
                "Teach the library the type with rollout_cassettes.register_codec, and record again.",
                "Keep the value out of what the rollout returns, and record again.",
            ],
            location=str(self.source),
            type_name=omitted.type_name,
            reason=omitted.reason,
        )


def unstorable(value: object, path: str, reason: str) -> UnstorableValueError:
    """Return the error for a value that no codec can store."""
    name = type_name(type(value))
    return UnstorableValueError(
        f"{path} is a {name}, which a cassette can't hold: {reason}.",
        fixes=[
            "Teach the library the type with rollout_cassettes.register_codec.",
            "Keep the value out of the batch.",
        ],
        location=path,
        type_name=name,
        reason=reason,
    )


def _codec_of(cls: type) -> Codec | None:
    _load(cls.__module__.partition(".")[0])
    if cls in _by_type:
        return _by_type[cls]
    return next((codec for belongs, codec in _by_family if belongs(cls)), None)


def _codec_for(kind: Any) -> Codec | None:
    if not isinstance(kind, str):
        return None
    _load(kind.partition(".")[0])
    return _by_kind.get(kind)


def _load(library: str) -> None:
    module = _LIBRARIES.get(library)
    if module is not None:
        importlib.import_module(module)
