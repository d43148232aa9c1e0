"""The directories of verl's dumps: which there are, and which of their steps are whole.

SkipManager writes ``{dump_dir}/{experiment}_{project}/GBS{..}_N{..}_in{..}_out{..}/{step}/``, with
``gen_batch.dp`` in it (V0 and fully asynchronous training), or ``{batch}/tq_batch.pt`` (V1, a batch
for each sample of the step; formerly ``tq_batch.pt`` itself). Beside each is a ``meta.json``, which
is written last: without it, the dump was cut short, and SkipManager does not load it either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rollout_cassettes.errors import CassetteError

GEN_BATCH = "gen_batch.dp"
TQ_BATCH = "tq_batch.pt"

_META = "meta.json"
_RUN = re.compile(r"GBS(?P<gbs>\d+)_N(?P<n>\d+)_in\w+_out\w+")


class DumpFile(NamedTuple):
    """One dumped batch.

    Attributes:
        path: The file.
        step: The step that it was dumped at.
        batch: Which of the step's batches it is, counted from 0.
        rows: How many trajectories it is said to hold; None where nothing is said.
    """

    path: Path
    step: int
    batch: int
    rows: int | None


class DumpDirectory(NamedTuple):
    """The dumps of one run.

    Attributes:
        path: The directory of its steps.
        files: The whole dumps, by step and batch.
        incomplete: Why a step is not whole, by step.
        n: How many trajectories a prompt has (``rollout.n``); None where that isn't known.
        gbs: How many prompts are submitted at once; 0 where that isn't known.
    """

    path: Path
    files: list[DumpFile]
    incomplete: dict[int, str]
    n: int | None
    gbs: int

    @classmethod
    def find(cls, source: Path, name: str | None = None) -> DumpDirectory:
        """Find the dumps at, or up to two directories below, a path.

        Args:
            source: The steps' own directory, the experiment's above it, or the ``dump_dir``.
            name: The dumped files that are meant; None for those that there are.

        Raises:
            CassetteError: If there are none, or those of several runs, or of several kinds.
        """
        if not source.is_dir():
            raise CassetteError(
                f"There is no directory {source}.",
                fixes=["Give the dump_dir of verl's skip section, or a directory in it."],
            )
        run = _only_run(source)
        name = name or _only_kind(run)
        steps = {int(step.name): _batches(step, name) for step in _numbered(run)}
        whole, incomplete = _sorted_out(steps)
        if not whole:
            raise _nothing(source, name, incomplete)
        found = _RUN.fullmatch(run.name)
        n, gbs = (int(found["n"]), int(found["gbs"])) if found else (0, 0)
        return cls(run, whole, incomplete, n or None, gbs)

    @property
    def prompts(self) -> int:
        """How many prompts a batch is of at least; 0 where that isn't known.

        Where a step has several batches, none of them is of all that was submitted.
        """
        return 0 if any(file.batch for file in self.files) else self.gbs


def _only_run(source: Path) -> Path:
    runs = sorted(_runs(source, 2))
    if not runs:
        raise _nothing(source, f"{GEN_BATCH} or {TQ_BATCH}", {})
    if len(runs) > 1:
        raise CassetteError(
            f"{source} holds the dumps of {len(runs)} runs: {', '.join(map(str, runs))}.",
            fixes=["Give the directory of one of them, and import each into its own cassette."],
        )
    return runs[0]


def _runs(path: Path, depth: int) -> Iterator[Path]:
    """Give the directories that hold dumped steps; what is inside of one is part of it."""
    if any(_kinds(step) for step in _numbered(path)):
        yield path
    elif depth:
        for child in path.iterdir():
            if child.is_dir():
                yield from _runs(child, depth - 1)


def _only_kind(run: Path) -> str:
    kinds = sorted(set().union(*(_kinds(step) for step in _numbered(run))))
    if len(kinds) > 1:
        raise CassetteError(
            f"{run} holds dumps of V1 ({TQ_BATCH}) and of other trainers ({GEN_BATCH}).",
            fixes=["Say which are meant, with --adapter, and import each into its own cassette."],
        )
    return kinds[0]


def _kinds(step: Path) -> set[str]:
    directories = [step, *_numbered(step)]
    return {n for n in (GEN_BATCH, TQ_BATCH) for d in directories if (d / n).is_file()}


def _numbered(path: Path) -> list[Path]:
    """Return the directories in a directory that are named by a number, in order."""
    children = (c for c in path.iterdir() if re.fullmatch(r"[0-9]{1,18}", c.name) and c.is_dir())
    return sorted(children, key=lambda child: int(child.name))


def _batches(step: Path, name: str) -> list[DumpFile] | str:
    """Return the dumps of a step; or, where it is not whole, why."""
    inner = _numbered(step) if name == TQ_BATCH else []
    directories = inner or [step]
    if inner and [int(batch.name) for batch in inner] != list(range(len(inner))):
        return f"it holds the batches {', '.join(batch.name for batch in inner)}"
    files = []
    for number, directory in enumerate(directories):
        meta = _read_meta(directory / _META)
        for file, is_there in ((name, (directory / name).is_file()), (_META, meta is not None)):
            if not is_there:
                return f"{(directory / file).relative_to(step.parent)} is missing or unfinished"
        assert meta is not None  # noqa: S101 - looked at in the loop
        _check_step(directory, step, meta)
        files.append(
            DumpFile(directory / name, int(step.name), number, meta.get("num_trajectories"))
        )
    return files


def _read_meta(path: Path) -> dict[str, Any] | None:
    """Return what a meta file says; None where it isn't there, or was cut short."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None


def _check_step(directory: Path, step: Path, meta: dict[str, Any]) -> None:
    if meta.get("global_steps") != int(step.name):
        raise CassetteError(
            f"{directory / _META} says step {meta.get('global_steps')}, and the directory of the "
            f"step is {step}.",
            fixes=[
                "Give the directory that the steps are in, not the one of a step.",
                "If directories were renamed, name them by the steps that they are of.",
            ],
        )


def _sorted_out(
    steps: dict[int, list[DumpFile] | str],
) -> tuple[list[DumpFile], dict[int, str]]:
    """Tell the whole steps from the others: a step has as many batches as any other one."""
    most = max((len(found) for found in steps.values() if isinstance(found, list)), default=0)
    whole: list[DumpFile] = []
    incomplete: dict[int, str] = {}
    for step, found in steps.items():
        if isinstance(found, str):
            incomplete[step] = found
        elif len(found) < most:
            incomplete[step] = f"it holds {len(found)} batches, and other steps hold {most}"
        else:
            whole += found
    return whole, incomplete


def _nothing(source: Path, name: str, incomplete: dict[int, str]) -> CassetteError:
    causes = "".join(f" Step {step} is not whole: {why}." for step, why in incomplete.items())
    return CassetteError(
        f"{source} holds no whole dump of verl's: no directory named by a step, with {name} and "
        f"{_META} in it.{causes}",
        fixes=["Give the dump_dir of verl's skip section, or a directory in it."],
    )
