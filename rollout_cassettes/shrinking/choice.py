"""What is kept of a cassette, so that it is no larger than it may be."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rollout_cassettes.adapters.excerpt import Group
from rollout_cassettes.cassette.tensors import encode_raw
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.shrinking.part import COMPRESSION, Part, Piece

_MOST_NAMED = 3


@dataclass(frozen=True)
class Choice:
    """The interactions that are kept, and of each the first prompts.

    Attributes:
        parts: The interactions.
        rows: How many rows each may have at most, whole prompts at a time; None for all.
        prompts: How many prompts each may have at most; None for all.
        dropped: The fields that are not kept, by adapter.
    """

    parts: Sequence[Part]
    rows: int | None
    prompts: int | None
    dropped: dict[str, frozenset[str]]

    def groups(self, part: Part) -> list[Group]:
        """Return the prompts that are kept of an interaction: at least one, if it has any."""
        first = part.groups[: self.prompts]
        if self.rows is None:
            return first
        ends = itertools.accumulate(len(group.rows) for group in first)
        count = sum(end <= self.rows for end in ends)
        return first[: max(count, 1)]

    def pieces(self) -> Iterator[tuple[Part, Piece]]:
        """Give what is written of each interaction.

        Raises:
            CassetteError: If one of them can't be cut.
        """
        chosen = {part.key: self.groups(part) for part in self.parts}
        is_cut = any(len(chosen[part.key]) < len(part.groups) for part in self.parts)
        uids = {
            group.uid for groups in chosen.values() for group in groups if group.uid is not None
        }
        for part in self.parts:
            groups = chosen[part.key] if is_cut else None
            yield part, part.piece(groups, uids, self.dropped.get(part.adapter.name, ()))

    def fits(self, most: int) -> bool:
        """Tell whether it takes no more than so many bytes."""
        return all(total <= most for total in itertools.accumulate(map(_nbytes, self.pieces())))

    def limited(self, prompts: int, steps: Collection[int] | None = None) -> Choice:
        """Return a choice with no more prompts in each interaction, and no other steps."""
        parts = [part for part in self.parts if steps is None or part.key.step in steps]
        return Choice(parts, self.rows, prompts, self.dropped)


def _nbytes(written: tuple[Part, Piece]) -> int:
    return written[1].nbytes


def fitted(choice: Choice, most: int) -> Choice:
    """Return as much of a choice as takes no more than so many bytes.

    First prompts go, the last of every interaction, down to one; then steps, the last first.

    Raises:
        CassetteError: If one prompt of the first step takes more; the message says what does.
    """
    if choice.fits(most):
        return choice
    prompts = _most_prompts(choice, most)
    return choice.limited(prompts) if prompts else _first_steps(choice.limited(1), most)


def _most_prompts(choice: Choice, most: int) -> int:
    """Return how many prompts every interaction may have; 0 where one is too many."""
    fitting, failing = 0, 1
    largest = max((len(choice.groups(part)) for part in choice.parts), default=0)
    while failing < largest and choice.limited(failing).fits(most):
        fitting, failing = failing, 2 * failing
    failing = min(failing, max(largest, 1))
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if choice.limited(middle).fits(most):
            fitting = middle
        else:
            failing = middle
    return fitting


def _first_steps(choice: Choice, most: int) -> Choice:
    """Return the first steps that fit."""
    kept: set[int] = set()
    total = 0
    for step, written in itertools.groupby(choice.pieces(), lambda each: each[0].key.step):
        pieces = [piece for _, piece in written]
        total += sum(piece.nbytes for piece in pieces)
        if total > most and not kept:
            raise _too_large(choice, step, pieces, total, most)
        if total > most:
            break
        kept.add(step)
    return choice.limited(1, kept)


def _too_large(
    choice: Choice, step: int, pieces: Sequence[Piece], nbytes: int, most: int
) -> CassetteError:
    sizes = {
        name: len(encode_raw({name: raw}, COMPRESSION)[0])
        for piece in pieces
        for name, raw in piece.tensors.items()
    }
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_MOST_NAMED]
    named = [f"{name} {readable_bytes(sizes[name])}" for name in largest]
    manifests = sum(piece.nbytes - len(piece.data) for piece in pieces)
    named.append(f"what is no tensor {readable_bytes(manifests)}")
    fields = sorted({name for part in choice.parts for name in part.fields})
    drop = [f"Keep fewer fields, of these: {', '.join(fields)}."] if fields else []
    directory = choice.parts[0].directory
    return CassetteError(
        f"{directory} can't be shrunk to {readable_bytes(most)}: step {step} with as little as can "
        f"be kept of it takes {readable_bytes(nbytes)}. Most of it, compressed: {', '.join(named)}.",
        fixes=[*drop, f"Let it take {nbytes} bytes, which is what that step needs."],
        needed=nbytes,
    )
