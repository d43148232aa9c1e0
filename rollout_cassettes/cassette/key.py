"""Under which name an interaction is filed."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

TRAIN = "train"

_PHASE = re.compile(r"(?!rank[0-9])[a-z][a-z0-9_-]*")
_RANK = re.compile(r"rank([0-9]{1,18})")
_LIMIT = 10**18
"""Steps, indices and ranks are smaller than this, so that their digits fit every reader's integers."""


@dataclass(frozen=True)
class Key:
    """The place of one interaction in a cassette.

    Keys sort by step, and within a step the training rollouts come before those of other phases.

    Attributes:
        step: The step it belongs to, 0 or more; what is counted is the manifest's ``step_kind``.
        phase: ``"train"``, ``"val"``, or another lower-case word.
        index: Which of the interactions at this step, phase and rank it is, counted from 0.
        rank: The process that recorded it, 0 where there is one.
    """

    step: int
    phase: str = TRAIN
    index: int = 0
    rank: int = 0

    def __post_init__(self) -> None:
        for name in ("step", "index", "rank"):  # a trainer may count with numpy's integers
            object.__setattr__(self, name, operator.index(getattr(self, name)))

    @property
    def stem(self) -> str:
        """The file name without its suffixes; what has its default value is left out.

        Raises:
            ValueError: If the step, phase, index or rank can't be part of a file name.
        """
        if not all(0 <= number < _LIMIT for number in (self.step, self.index, self.rank)):
            raise ValueError(f"step, index and rank must be from 0 to {_LIMIT - 1}, got {self!r}")
        if not _PHASE.fullmatch(self.phase):
            raise ValueError(f"a phase is a lower-case word such as 'train', got {self.phase!r}")
        parts = [f"step-{self.step:06d}"]
        if self.phase != TRAIN:
            parts.append(self.phase)
        if self.index:
            parts.append(str(self.index))
        if self.rank:
            parts.append(f"rank{self.rank}")
        return ".".join(parts)

    @classmethod
    def from_stem(cls, stem: str) -> Key | None:
        """Return the key that a file name stands for; None if it isn't an interaction's."""
        head, *rest = stem.split(".")
        if not re.fullmatch(r"step-[0-9]{6,18}", head):
            return None
        phase, index, rank = TRAIN, 0, 0
        for part in rest:
            if re.fullmatch(r"[0-9]{1,18}", part):
                index = int(part)
            elif found := _RANK.fullmatch(part):
                rank = int(found[1])
            elif _PHASE.fullmatch(part):
                phase = part
            else:
                return None
        key = cls(int(head.removeprefix("step-")), phase, index, rank)
        return key if key.stem == stem else None

    @classmethod
    def from_file(cls, name: str) -> Key | None:
        """Return the key of the interaction that a file belongs to, also while it is written; else None."""
        return cls.from_stem(re.split(r"\.(?:safetensors|msgpack)\b", name.removeprefix("."))[0])

    def __lt__(self, other: Key) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, bool, str, int, int]:
        return self.step, self.phase != TRAIN, self.phase, self.index, self.rank

    def __str__(self) -> str:
        text = f"step {self.step}"
        if self.phase != TRAIN:
            text += f" ({self.phase})"
        if self.index:
            text += f", interaction {self.index}"
        if self.rank:
            text += f", rank {self.rank}"
        return text
