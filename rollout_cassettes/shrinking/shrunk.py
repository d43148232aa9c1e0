"""From a cassette to a small one that replays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollout_cassettes.adapters import Adapter, function, registered
from rollout_cassettes.cassette import Cassette, Interaction, Key
from rollout_cassettes.cassette.cassette import not_found
from rollout_cassettes.cassette.fresh import fresh, refuse_existing
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cassette.reads import load_reads
from rollout_cassettes.errors import CassetteError, StepNotRecordedError, named_steps
from rollout_cassettes.session.steps import Steps, StepsArgument
from rollout_cassettes.shrinking.choice import Choice, fitted
from rollout_cassettes.shrinking.part import COMPRESSION, Part

Progress = Callable[[Sequence[Key]], Iterable[Key]]


@dataclass(frozen=True)
class Shrunk:
    """What came of shrinking a cassette.

    Attributes:
        source: The directory of the large one.
        path: The directory of the small one.
        steps: The steps that are in it.
        interactions: How many interactions they are.
        rows: How many rows they have; None where the recording has none.
        rows_before: How many rows the selected steps have in the large one; None where they have
            none.
        dropped: The fields of responses that were left out.
        nbytes: What it takes on the disk, in bytes.
        nbytes_before: What the whole cassette takes, in bytes.
    """

    source: Path
    path: Path
    steps: list[int]
    interactions: int
    rows: int | None
    rows_before: int | None
    dropped: list[str]
    nbytes: int
    nbytes_before: int


def shrink(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    rows: int | None = None,
    steps: StepsArgument = None,
    fields: Iterable[str] | str | None = None,
    max_bytes: int | None = None,
    adapters: Iterable[Adapter] = (),
    progress: Progress = iter,
) -> Shrunk:
    """Make a small cassette of a large one, to be committed beside a test or sent to somebody.

    It replays like the large one, for a run that asks for the prompts that were kept. Neither torch
    nor the framework is needed. The small cassette is there whole, or not at all.

    Args:
        source: The directory of the large one, which stays as it is.
        destination: The directory of the small one, new or empty.
        rows: How many rows of each interaction to keep: its first prompts with all of their rows,
            as long as these are no more; and one prompt at least. By default all.
        steps: The steps to keep, as for :func:`record`; by default all.
        fields: The names of the response's fields to keep. ``"read"`` for those that replays with
            ``track_reads=True`` have read, ``"all"`` for all of them; by default what was read,
            where that is known.
        max_bytes: How much the small cassette may take on the disk. Prompts are left out until it
            fits, the last of every interaction first, and then steps, the last first.
        adapters: Adapters of yours that recorded it: they know its rows and fields.
        progress: Given the places of interactions, gives them one by one.

    Raises:
        ValueError: If ``rows`` or ``max_bytes`` is less than 1.
        CassetteNotFoundError: If there is no cassette at the source.
        StepNotRecordedError: If a step that is listed is not in it.
        StepExistsError: If there is a cassette at the destination.
        CassetteWriteError: If the destination is not empty, or can't be written to.
        CassetteCorruptError: If the source is damaged.
        CassetteError: If a response has no rows that could be told apart, or no such field; if
            nothing is left; if it can't be made to fit.
    """
    for name, number in (("rows", rows), ("max_bytes", max_bytes)):
        if number is not None and number < 1:
            raise ValueError(f"{name} is a number from 1 on; got {number}")
    origin, target = Path(source).expanduser(), Path(destination).expanduser().resolve()
    cassette = Cassette(origin)
    if not cassette.keys:
        raise not_found(origin)
    if origin.resolve() == target:
        raise CassetteError(
            f"{origin} can't be shrunk into itself.", fixes=["Name a new directory."]
        )
    refuse_existing(target)
    keys = _selected(cassette, Steps.parse(steps))
    known = {**registered(), **{each.name: each for each in adapters}}
    parts = [_part(cassette, key, known) for key in progress(keys)]
    if rows is not None:
        for part in parts:
            part.require_rows()
    choice = Choice(parts, rows, None, _dropped(origin, parts, fields))
    if max_bytes is not None:
        choice = fitted(choice, max_bytes)
    return _written(cassette, parts, choice, target)


def _selected(cassette: Cassette, steps: Steps) -> list[Key]:
    """Return the places of the interactions of these steps.

    Raises:
        StepNotRecordedError: If a step that is listed is not in the cassette.
        CassetteError: If none is left.
    """
    for step in steps.listed or ():
        if step not in cassette:
            raise _no_such_step(cassette, step)
    keys = [key for key in cassette.keys if steps.covers(key.step)]
    if not keys:
        raise CassetteError(f"Nothing would be left of {cassette.path}: no step is selected.")
    return keys


def _part(cassette: Cassette, key: Key, known: dict[str, Adapter]) -> Part:
    name = Interaction(cassette.path, key).manifest.adapter
    adapter = known.get(name) or function(name=name)
    return Part.of(cassette.path, key, adapter)


def _dropped(
    directory: Path, parts: Sequence[Part], fields: Iterable[str] | str | None
) -> dict[str, frozenset[str]]:
    """Return the fields that are not kept, by adapter.

    Raises:
        CassetteError: If no part has a field that is to be kept, or no replay was tracked.
    """
    has: dict[str, set[str]] = {}
    for part in parts:
        has.setdefault(part.adapter.name, set()).update(part.fields)
    if fields is None or fields == "read":
        reads = load_reads(directory)
        if reads is None and fields == "read":
            raise _untracked(directory)
        reads = reads or {}
        return {name: frozenset(has[name].difference(reads[name])) for name in has if name in reads}
    if fields == "all":
        return {}
    kept = {fields} if isinstance(fields, str) else {*fields}
    every = set[str]().union(*has.values())
    if not kept or not kept <= every:
        raise _no_such_field(directory, sorted(kept - every), sorted(every))
    return {name: frozenset(own - kept) for name, own in has.items()}


def _written(cassette: Cassette, parts: Sequence[Part], choice: Choice, target: Path) -> Shrunk:
    nbytes = 0
    with fresh(target, COMPRESSION) as writer:
        for _, piece in choice.pieces():
            writer.exchange(piece.manifest, piece.data)
            nbytes += piece.nbytes
    dropped = {
        name
        for part in choice.parts
        for name in choice.dropped.get(part.adapter.name, frozenset()).intersection(part.fields)
    }
    rows = [len(g.rows) for part in choice.parts for g in choice.groups(part)]
    before = [len(g.rows) for part in parts for g in part.groups]
    everything = [cassette.interaction(key).nbytes for key in cassette.keys]
    return Shrunk(
        source=cassette.path,
        path=target,
        steps=sorted({part.key.step for part in choice.parts}),
        interactions=len(choice.parts),
        rows=sum(rows) if before else None,
        rows_before=sum(before) if before else None,
        dropped=sorted(dropped),
        nbytes=nbytes,
        nbytes_before=sum(everything),
    )


def _no_such_step(cassette: Cassette, step: int) -> StepNotRecordedError:
    return StepNotRecordedError(
        f"Step {step} is not in {cassette.path}.",
        fixes=[f"Choose among what it has: {named_steps(cassette.steps)}."],
        path=cassette.path,
        step=step,
        phase=TRAIN,
        index=0,
        recorded=cassette.steps,
    )


def _untracked(directory: Path) -> CassetteError:
    return CassetteError(
        f"It is not known which fields of {directory} are read: no replay of it was tracked.",
        fixes=[
            f"Replay it once: with replay(path={str(directory)!r}, track_reads=True): ...",
            "Name the fields to keep: --fields a,b.",
        ],
    )


def _no_such_field(directory: Path, missing: list[str], known: list[str]) -> CassetteError:
    what = f"no field {', '.join(map(repr, missing))}" if missing else "no field that is to be kept"
    has = f"It has {', '.join(known)}." if known else "Its responses have no named fields."
    return CassetteError(f"{directory} has {what}.", fixes=[has])
