"""The table of codecs: who knows which kind of value.

A codec knows how one kind of value becomes a node and back. The codecs of a library are in the
module of this package that is named for it, and are loaded when a value of that library, or a
node of its kind, is first met: so a tree of plain Python needs neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rollout_cassettes.cassette.tree.joiner import Joiner
    from rollout_cassettes.cassette.tree.splitter import Splitter

KIND = "$"
"""The entry that makes a map a node, and names its kind."""

CUSTOM = "custom."
"""How the kinds of users' types begin."""

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


_by_type: dict[type, Codec] = {}
_by_kind: dict[str, Codec] = {}
_by_family: list[tuple[Callable[[type], bool], Codec]] = []


def add(codec: Codec, *types: type, family: Callable[[type], bool] | None = None) -> None:
    """Enter a codec into the table, for exact types or for a family of types."""
    _by_kind[codec.kind] = codec
    _by_type.update(dict.fromkeys(types, codec))
    if family is not None:
        _by_family.append((family, codec))


def codec_of(cls: type) -> Codec | None:
    """Return the codec that knows a type, if there is one."""
    _load(cls.__module__.partition(".")[0])
    if cls in _by_type:
        return _by_type[cls]
    return next((codec for belongs, codec in _by_family if belongs(cls)), None)


def codec_for(kind: str) -> Codec | None:
    """Return the codec that knows a kind of node, if there is one.

    Raises:
        ImportError: If the library that the kind belongs to isn't installed.
    """
    _load(kind.partition(".")[0])
    return _by_kind.get(kind)


def type_name(cls: type) -> str:
    """Return ``module.Class``, or ``Class`` for a builtin."""
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


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
        TypeError: If it is no type, or one of the functions can't be called.
        ValueError: If another type was registered under that name.
    """
    if not all((isinstance(cls, type), callable(encode), callable(decode))):
        raise TypeError(f"a type and two functions are needed; got {cls!r}, {encode!r}, {decode!r}")
    name = name or type_name(cls)
    kind = CUSTOM + name
    known = codec_of(cls)  # loads the codecs of the type's library, which else would replace this
    if kind in _by_kind and _by_kind[kind] is not known:
        raise ValueError(f"another type is registered as {name!r}: give this one another name=")

    def split_custom(value: Any, into: Splitter, path: str) -> dict[str, Any]:
        return {"data": into.node(encode(value), path)}

    def join_custom(node: dict[str, Any], joiner: Joiner) -> Any:
        data = joiner.value(node["data"])
        try:
            return decode(data)
        except Exception as error:
            raise joiner.unavailable(name, f"its registered decoder raised {error!r}") from error

    add(Codec(kind, split_custom, join_custom), cls)


def _load(library: str) -> None:
    module = _LIBRARIES.get(library)
    if module is not None:
        importlib.import_module(module)
