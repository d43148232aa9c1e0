"""Taking a tree apart into named tensors and a skeleton."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rollout_cassettes.cassette.tree.codec import KIND, codec_of, type_name
from rollout_cassettes.errors import UnstorableValueError

if TYPE_CHECKING:
    import torch

MAX_DEPTH = 128
"""How deep a tree may nest. Twice this many msgpack levels is still within what readers allow."""

_AS_THEY_ARE = (type(None), bool, float, str, bytes)
_INT_RANGE = range(-(2**63), 2**64)


class Omission(NamedTuple):
    """A value that was left out of a recording because it can't be stored.

    Attributes:
        path: Where it stood, such as ``"response/extra/tool"``.
        type_name: Its type, as ``module.Class``.
        reason: Why it can't be stored.
    """

    path: str
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


def split(value: Any, *path: object, strict: bool = False, portable: bool = False) -> Split:
    """Take a value apart into a skeleton and named tensors.

    Args:
        value: Any tree of storable values.
        *path: The first parts of every tensor's path, such as ``"response"``.
        strict: Raise at the first value that can't be stored, instead of listing it.
        portable: Leave out what does not belong to the values themselves: on which device they
            are, whether they require gradients or are locked, and what shares its memory with
            what.

    Raises:
        UnstorableValueError: If ``strict`` and a value can't be stored.
    """
    splitter = Splitter(strict=strict, portable=portable)
    skeleton = splitter.node(value, "/".join(map(escape, path)))
    return Split(skeleton, splitter.tensors, splitter.omissions)


def escape(part: object) -> str:
    """Make one part of a path: ``/`` would start a new part, so it becomes ``~1`` and ``~`` ``~0``."""
    text = str(part).replace("~", "~0").replace("/", "~1")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def unstorable(value: object, path: str, reason: str) -> UnstorableValueError:
    """Return the error for a value that can't be stored."""
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


@dataclass
class Splitter:
    """One walk that takes a tree apart.

    Attributes:
        strict: Raise at the first value that can't be stored.
        portable: Leave out devices, gradients, locks, and shared memory.
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
        try:
            return self._entered(value, cls, path)
        except UnstorableValueError as error:
            refusal = error
        except Exception as error:  # noqa: BLE001 - a value may be broken in any way, and still not end a run
            refusal = unstorable(value, path, f"taking it apart raised {error!r}")
            refusal.__cause__ = error
        if self.strict:
            raise refusal
        return self._omit(refusal)

    def child(self, value: Any, path: str, part: object) -> Any:
        """Return the skeleton of a part of the value at ``path``."""
        if type(value) in _AS_THEY_ARE:  # most parts are, and need no path
            return value
        return self.node(value, f"{path}/{escape(part)}")

    def children(self, values: Iterable[Any], path: str) -> list[Any]:
        """Return the skeletons of the parts of a sequence."""
        return [self.child(value, path, number) for number, value in enumerate(values)]

    def needed(self, value: Any, path: str, part: object) -> Any:
        """Return the skeleton of a part without which the value at ``path`` is nothing.

        Raises:
            UnstorableValueError: If the part, or a part of it, can't be stored.
        """
        strict, self.strict = self.strict, True
        try:
            return self.child(value, path, part)
        finally:
            self.strict = strict

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

    def _entered(self, value: Any, cls: type, path: str) -> Any:
        if id(value) in self._open:
            raise unstorable(value, path, "it contains itself")
        if len(self._open) >= MAX_DEPTH:
            raise unstorable(value, path, f"it is nested more than {MAX_DEPTH} levels deep")
        self._open.append(id(value))
        try:
            return self._container(value, cls, path)
        finally:
            self._open.pop()

    def _container(self, value: Any, cls: type, path: str) -> Any:
        if cls is list:
            return self.children(value, path)
        if cls is dict and KIND not in value and all(type(key) is str for key in value):
            return {key: self.child(item, path, key) for key, item in value.items()}
        codec = codec_of(cls)
        if codec is None:
            raise unstorable(value, path, "no codec knows this type")
        return {KIND: codec.kind, **codec.split(value, self, path)}

    def _omit(self, refusal: UnstorableValueError) -> dict[str, Any]:
        omission = Omission(refusal.location, refusal.type_name, refusal.reason)
        self.omissions.append(omission)
        return {KIND: "omitted", "type": omission.type_name, "reason": omission.reason}
