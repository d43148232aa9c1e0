"""Putting a tree together again from named tensors and a skeleton."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.damage import damaged
from rollout_cassettes.cassette.tree.codec import CUSTOM, KIND, Codec, codec_for, type_name
from rollout_cassettes.errors import CassetteError, UnstorableValueError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from rollout_cassettes.cassette.safetensors_file import RawTensor

AS_PLAIN = "Read it with numpy=True: as plain containers."
"""What helps where only a type is missing."""

_AS_THEY_ARE = frozenset([type(None), bool, int, float, str, bytes])


@dataclass(frozen=True, eq=False)
class Omitted:
    """Stands where a value was left out, for those who read a cassette by hand.

    Attributes:
        type_name: The value's type, as ``module.Class``.
        reason: Why it could not be stored.
    """

    type_name: str
    reason: str


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
        skeleton: What :func:`~rollout_cassettes.cassette.tree.split` returned.
        tensors: Tensor data by path.
        source: The file that the skeleton comes from, for messages.
        device: Where tensors go; None for the device they were recorded on, or the CPU where
            that one is missing.
        strict: Raise where a value was left out, instead of putting :class:`Omitted` there.

    Raises:
        CassetteCorruptError: If the skeleton is not one that ``split`` makes.
        UnstorableValueError: If it holds a value that can't be made here; or, if ``strict``, one
            that was left out.
    """
    joiner = Joiner(tensors, source=source, device=device, strict=strict)
    with joiner.reporting_damage():
        return joiner.value(skeleton)


class Joiner:
    """One walk that puts a tree together.

    Args:
        tensors: Tensor data by path.
        source: The file that the skeleton comes from, for messages.
        device: Where tensors go; None for the device they were recorded on.
        strict: Raise where a value was left out.
    """

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

    def value(self, node: Any) -> Any:
        """Return the value that a skeleton stands for."""
        cls = type(node)
        if cls in _AS_THEY_ARE:
            return node
        if cls is list:
            return [item if type(item) in _AS_THEY_ARE else self.value(item) for item in node]
        if cls is not dict:
            raise ValueError(f"a {type_name(cls)} is no part of a skeleton")
        if KIND not in node:
            return {
                key: item if type(item) in _AS_THEY_ARE else self.value(item)
                for key, item in node.items()
            }
        if node[KIND] == "omitted":
            return self._omitted(node)
        return self._codec_for(node[KIND]).join(node, self)

    def unavailable(self, name: str, reason: str, *fixes: str) -> UnstorableValueError:
        """Return the error for a value that is sound, but can't be made here."""
        return UnstorableValueError(
            f"{self.source} holds a {name}, which can't be made here: {reason}.",
            fixes=fixes,
            location=str(self.source),
            type_name=name,
            reason=reason,
        )

    @contextmanager
    def reporting_damage(self) -> Iterator[None]:
        """Turn what a malformed skeleton makes Python raise into a :class:`CassetteCorruptError`."""
        try:
            yield
        except (CassetteError, MemoryError):
            raise
        except RecursionError as error:
            limit = sys.getrecursionlimit()
            what = f"it is nested deeper than the recursion limit of {limit} allows here"
            raise damaged(self.source, what) from error
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # torch's own, which may not be loaded
                raise
            what = f"its contents don't make sense ({error!r})"
            raise damaged(self.source, what) from error

    def _codec_for(self, kind: Any) -> Codec:
        if not isinstance(kind, str):
            raise TypeError(f"{kind!r} is no kind of node")
        try:
            codec = codec_for(kind)
        except ImportError as error:
            raise self.unavailable(kind, str(error), f"Install {error.name}.", AS_PLAIN) from error
        if codec is not None:
            return codec
        if not kind.startswith(CUSTOM):
            raise ValueError(f"{kind!r} is no kind of node")
        name = kind.removeprefix(CUSTOM)
        fix = f"Call rollout_cassettes.register_codec(..., name={name!r}) before reading."
        raise self.unavailable(name, "no codec is registered under that name", fix, AS_PLAIN)

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
