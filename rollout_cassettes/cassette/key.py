"""Under which name an interaction is filed."""

from __future__ import annotations

import re
from dataclasses import dataclass

TRAIN = "train"

_PHASE = re.compile(r"(?!rank\d)[a-z][a-z0-9_-]*")
_RANK = re.compile(r"rank([1-9]\d*)")


@dataclass(frozen=True, order=True)
class Key:
    """The place of one interaction in a cassette; keys sort in the order of a run.

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

    @property
    def stem(self) -> str:
        """The file name without its suffixes; what has its default value is left out.

        Raises:
            ValueError: If the step, phase, index or rank can't be part of a file name.
        """
        if min(self.step, self.index, self.rank) < 0:
            raise ValueError(f"step, index and rank must be 0 or more, got {self!r}")
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

    def __str__(self) -> str:
        text = f"step {self.step}"
        if self.phase != TRAIN:
            text += f" ({self.phase})"
        if self.index:
            text += f", interaction {self.index}"
        if self.rank:
            text += f", rank {self.rank}"
        return text
