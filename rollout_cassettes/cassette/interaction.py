"""One recorded request and response."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_cassettes.cassette import tensors as tensors_file
from rollout_cassettes.cassette import tree
from rollout_cassettes.cassette.damage import damaged
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.cassette.key import Key
from rollout_cassettes.cassette.layout import layout_of
from rollout_cassettes.cassette.manifest import SUFFIX, Manifest
from rollout_cassettes.trajectories import Figures, Statistics, Trajectory
from rollout_cassettes.trajectories.batch import Batch, to_batch
from rollout_cassettes.trajectories.frames import to_pandas

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from rollout_cassettes.cassette.safetensors_file import SafetensorsFile

logger = logging.getLogger("rollout_cassettes")


class Interaction:
    """One interaction of a cassette. Nothing is read before it is asked for.

    Args:
        directory: The cassette's directory.
        key: The interaction's place in it.
        numpy: Give plain containers and numpy arrays; needs neither torch nor a framework.
        device: Where tensors go; None for the device they were recorded on, or the CPU where
            that one is missing.
        strict: Raise where a value was left out of the recording.
    """

    def __init__(
        self,
        directory: Path,
        key: Key,
        *,
        numpy: bool = False,
        device: str | torch.device | None = None,
        strict: bool = False,
    ) -> None:
        self.key = key
        self.path = directory / (key.stem + SUFFIX)
        self._numpy = numpy
        self._device = device
        self._strict = strict

    @property
    def step(self) -> int:
        """The step it is filed under."""
        return self.key.step

    @property
    def phase(self) -> str:
        """``"train"``, ``"val"``, …."""
        return self.key.phase

    @property
    def index(self) -> int:
        """Which of the step's interactions it is, counted from 0."""
        return self.key.index

    @property
    def rank(self) -> int:
        """The process that recorded it."""
        return self.key.rank

    @cached_property
    def manifest(self) -> Manifest:
        """All that is known of it, apart from tensor data.

        Raises:
            CassetteCorruptError: If the manifest is damaged or belongs to another step.
            CassetteVersionError: If it is written in a newer format.
        """
        return self._read_manifest()

    @cached_property
    def request(self) -> Any:
        """What was asked for, as the adapter keeps it.

        Raises:
            CassetteCorruptError: If a file is damaged, altered or missing.
            UnstorableValueError: If it holds an object whose class this process hasn't imported.
        """
        return self._value("request")

    @cached_property
    def response(self) -> Any:
        """What the rollout engine produced, in the container types that were recorded.

        Raises:
            CassetteCorruptError: If a file is damaged, altered or missing.
            UnstorableValueError: If it holds an object whose class this process hasn't imported.
        """
        return self._value("response")

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """The rows of the response, one view for all frameworks; none where it has no rows.

        They are read without torch and without the framework, and share no memory with
        :attr:`response`.

        Raises:
            CassetteCorruptError: If a file is damaged, altered or missing.
        """
        own = Interaction(self.path.parent, self.key, numpy=True)
        recorded = own.request, own.response
        try:
            rows = layout_of(self.manifest.adapter)(*recorded)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # The hashes are right, so it is sound: values were left out, or are laid out otherwise.
            logger.warning(
                "%s shows no rows: not as %s has them (%r)", self.path, self.manifest.adapter, error
            )
            return []
        return [replace(row, step=self.step, phase=self.phase) for row in rows]

    @cached_property
    def figures(self) -> Figures:
        """Its rows, tokens, rewards, size and duration, as figures."""
        manifest = self.manifest
        return Figures(
            step=self.step,
            phase=self.phase,
            index=self.index,
            rank=self.rank,
            recorded_at=manifest.recorded_at,
            seconds=manifest.seconds,
            nbytes=self.nbytes,
            statistics=Statistics.of(self.trajectories),
        )

    @cached_property
    def polls(self) -> list[Any]:
        """What the framework was told when it asked how far the rollouts were, oldest first."""
        return list(self._value("polls")) if "polls" in self.skeletons else []

    @cached_property
    def random_state(self) -> Any:
        """The random generators that the live call advanced, as they were after it."""
        states = self._value("random_state") if "random_state" in self.skeletons else None
        if not isinstance(states, dict) or not all(isinstance(s, dict) for s in states.values()):
            raise damaged(self.path, "its random_state is no map of states")
        return states

    @cached_property
    def tensors(self) -> SafetensorsFile:
        """The stored tensors by path (``"response/input_ids"``): a mapping that reads lazily.

        Raises:
            CassetteCorruptError: If the file is damaged, altered or missing.
        """
        entry = self.manifest.tensors
        return tensors_file.read(self.path.with_name(entry.file), entry)

    @property
    def nbytes(self) -> int:
        """Its size on disk, both files, in bytes."""
        return self.path.stat().st_size + self.manifest.tensors.size

    def verify(self) -> None:
        """Check both files against the hashes that were written with them.

        Raises:
            CassetteCorruptError: If a file is damaged, altered or missing.
            CassetteVersionError: If it is written in a newer format.
        """
        entry = self._read_manifest().tensors
        tensors_file.verify(self.path.with_name(entry.file), entry)

    def _read_manifest(self) -> Manifest:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError as error:
            raise damaged(self.path, "the file is gone since the cassette was opened") from error
        manifest = Manifest.from_bytes(data, self.path)
        if manifest.key != self.key:
            raise damaged(self.path, f"it is the manifest of {manifest.key}, renamed")
        expected = tensors_file.SUFFIXES.get(manifest.tensors.compression)
        if expected is None or manifest.tensors.file != self.key.stem + expected:
            raise damaged(self.path, f"it names the tensors file {manifest.tensors.file!r}")
        return manifest

    @cached_property
    def skeletons(self) -> dict[str, Any]:
        """Its trees by name, as they are stored: all that is no tensor data; see docs/format.md.

        Raises:
            CassetteCorruptError: If the manifest is damaged.
        """
        try:
            trees = self.manifest.trees.unpack()
        except ValueError as error:
            raise damaged(self.path, str(error)) from error
        for name in ("request", "response"):
            if name not in trees:
                raise damaged(self.path, f"it lacks the {name}")
        return trees

    def _value(self, name: str) -> Any:
        skeleton = self.skeletons[name]
        if self._numpy:
            return tree.plain(skeleton, self.tensors, source=self.path)
        return tree.join(
            skeleton, self.tensors, source=self.path, device=self._device, strict=self._strict
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return its trajectories as a data frame, a row for each.

        Raises:
            CassetteError: If pandas is not installed.
        """
        return to_pandas(self.trajectories)

    def to_batch(self, device: str | torch.device | None = None, *, pad_id: int = 0) -> Batch:
        """Return its trajectories as padded tensors.

        Args:
            device: Where tensors go; the CPU by default.
            pad_id: What stands where there is no token.

        Raises:
            CassetteError: If the recording holds no tokens.
        """
        return to_batch(self.trajectories, device, pad_id)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        from rollout_cassettes.cassette.notebook import interaction_bundle  # noqa: PLC0415 - rich

        return interaction_bundle(Interaction(self.path.parent, self.key, numpy=True))

    def __eq__(self, other: object) -> bool:
        """Tell whether another interaction has its place, and the same request and response.

        They are compared to the bit; when they were recorded, and how, makes no difference.
        """
        if not isinstance(other, Interaction):
            return NotImplemented
        return self.key == other.key and all(
            digest(getattr(self, part)) == digest(getattr(other, part))
            for part in ("request", "response")
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Interaction {self.key} of {self.path.parent}>"
