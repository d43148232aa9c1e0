"""A cassette: a directory of interactions, read like a sequence of steps."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette.device import device_named
from rollout_cassettes.cassette.interaction import Interaction
from rollout_cassettes.cassette.key import TRAIN, Key
from rollout_cassettes.cassette.manifest import SUFFIX
from rollout_cassettes.errors import (
    CassetteNotFoundError,
    StepNotRecordedError,
    named_steps,
    spans,
)
from rollout_cassettes.trajectories.batch import Batch
from rollout_cassettes.trajectories.frames import to_dataset

if TYPE_CHECKING:
    import datasets
    import torch


def open_cassette(
    path: str | os.PathLike[str],
    *,
    numpy: bool = False,
    device: str | torch.device | None = None,
) -> Cassette:
    """Open a cassette for reading.

    Args:
        path: Its directory; ``~`` stands for the home directory, as for :func:`record`.
        numpy: Give plain containers and numpy arrays, without importing torch or a framework:
            batches and objects become dicts, jagged tensors lists of arrays.
        device: Where tensors go; None for the device they were recorded on, or the CPU where
            that one is missing.

    Raises:
        CassetteNotFoundError: If there is no directory at the path.
        ValueError: If torch knows no such device, or this machine has none.
    """
    return Cassette(Path(path).expanduser(), numpy=numpy, device=device_named(device))


class Cassette:
    """The interactions in a directory, sequence-like by step.

    Opening lists the directory and reads no file. ``cassette[2]`` is the interaction of step 2
    (the first, where it has several), ``2 in cassette`` and ``len(cassette)`` speak of steps, and
    iterating gives one interaction for each step, in order.

    Args:
        path: The directory.
        numpy: Give plain containers and numpy arrays.
        device: Where tensors go.
        strict: Raise where a value was left out of a recording.

    Raises:
        CassetteNotFoundError: If there is no directory at the path.
    """

    def __init__(
        self,
        path: Path,
        *,
        numpy: bool = False,
        device: str | torch.device | None = None,
        strict: bool = False,
    ) -> None:
        self.path = path
        self._options: dict[str, Any] = {"numpy": numpy, "device": device, "strict": strict}
        self._keys: dict[int, list[Key]] = {}
        for key in sorted(_keys_in(path)):
            self._keys.setdefault(key.step, []).append(key)

    @property
    def steps(self) -> list[int]:
        """The recorded steps, in order."""
        return list(self._keys)

    @property
    def keys(self) -> list[Key]:
        """The places of all interactions, in order."""
        return [key for keys in self._keys.values() for key in keys]

    def interactions(self, step: int | None = None) -> list[Interaction]:
        """Return the interactions of a step, or all of them, in order.

        Raises:
            StepNotRecordedError: If the step was not recorded.
        """
        if step is None:
            return [self.interaction(key) for key in self.keys]
        if step not in self._keys:
            raise not_recorded(self.path, Key(step), self.steps)
        return [self.interaction(key) for key in self._keys[step]]

    def interaction(self, key: Key) -> Interaction:
        """Return the interaction at a place.

        Raises:
            StepNotRecordedError: If there is none.
        """
        if key not in self._keys.get(key.step, ()):
            raise not_recorded(self.path, key, self.steps)
        return Interaction(self.path, key, **self._options)

    def batches(
        self,
        device: str | torch.device | None = None,
        *,
        phase: str = TRAIN,
        pad_id: int = 0,
    ) -> Iterator[Batch]:
        """Give each interaction of a phase as padded tensors, in order: for a loss of one's own.

        Args:
            device: Where tensors go; the CPU by default.
            phase: Which interactions.
            pad_id: What stands where there is no token.

        Raises:
            CassetteError: If a recording holds no tokens.
        """
        for key in self.keys:
            if key.phase == phase:
                yield self.interaction(key).to_batch(device, pad_id=pad_id)

    def to_dataset(self) -> datasets.Dataset:
        """Return all trajectories as a data set of Hugging Face's library, a row for each.

        Raises:
            CassetteError: If datasets is not installed.
        """
        return to_dataset(row for key in self.keys for row in self.interaction(key).trajectories)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        from rollout_cassettes.cassette.notebook import cassette_bundle  # noqa: PLC0415 - rich

        return cassette_bundle(self)

    def __getitem__(self, step: int) -> Interaction:
        return self.interactions(step)[0]

    def __contains__(self, step: object) -> bool:
        return step in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Interaction]:
        return (self[step] for step in self._keys)

    def __eq__(self, other: object) -> bool:
        """Tell whether another cassette holds equal interactions, and no others."""
        if not isinstance(other, Cassette):
            return NotImplemented
        return self.keys == other.keys and self.interactions() == other.interactions()

    def __hash__(self) -> int:
        return hash(tuple(self.keys))

    def __repr__(self) -> str:
        return f"<Cassette {self.path}: steps {spans(self.steps)}>"


def not_recorded(path: Path, key: Key, recorded: list[int]) -> StepNotRecordedError:
    """Return the error for an interaction that a cassette lacks."""
    nearest = sorted(recorded, key=lambda step: abs(step - key.step))[:3]
    hint = f" (nearest: {spans(nearest)})" if nearest else ""
    what = f"{key} is not in the cassette {path}, which holds {named_steps(recorded)}{hint}."
    if key.step in recorded:
        what = f"The cassette {path} holds step {key.step}, but not {key}."
    return StepNotRecordedError(
        what[0].upper() + what[1:],
        fixes=[
            f"Record it: with record({key.step}, path={str(path)!r}): ...",
            'Generate what is missing, and keep it: replay(..., on_miss="record").',
            'Give the nearest recorded step instead: replay(..., mode="repeat").',
        ],
        path=path,
        step=key.step,
        phase=key.phase,
        index=key.index,
        recorded=recorded,
    )


def not_found(path: Path) -> CassetteNotFoundError:
    """Return the error for a path without a cassette, with the cassettes near it."""
    fixes = [f"Record it: with record(path={str(path)!r}): ..."]
    near = [entry.name for entry in path.parent.glob("*/") if any(entry.glob(f"step-*{SUFFIX}"))]
    close = difflib.get_close_matches(path.name, near, n=3, cutoff=0.4)
    if close:
        fixes.insert(
            0, "Did you mean " + " or ".join(str(path.parent / name) for name in close) + "?"
        )
    return CassetteNotFoundError(f"There is no cassette at {path}.", fixes=fixes, path=path)


def _keys_in(path: Path) -> Iterator[Key]:
    try:
        names = os.listdir(path)  # noqa: PTH208 - names are wanted, not Path objects
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_found(path) from error
    for name in names:
        if name.endswith(SUFFIX):
            key = Key.from_stem(name.removesuffix(SUFFIX))
            if key is not None:
                yield key
