"""The command ``export``."""

from __future__ import annotations

import enum
import json as json_library
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette import Interaction
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.cli.destination import written
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import opened, opening
from rollout_cassettes.cli.output import CassettePath, Json, display, print_json, warn
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.cli.tokenizer import TokenizerPath, decoder
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.frames import needed, to_arrow, to_dataset
from rollout_cassettes.trajectories.records import viewed


class Format(str, enum.Enum):
    """What a cassette can be exported to."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    HF_DATASET = "hf-dataset"


_SUFFIXES = {Format.JSONL: "-jsonl", Format.PARQUET: ".parquet", Format.HF_DATASET: "-dataset"}
_SUFFIXES_INSIDE = {Format.JSONL: [".jsonl"], Format.HF_DATASET: [".arrow", ".json"]}
_PACKAGES = {Format.PARQUET: ["pyarrow"], Format.HF_DATASET: ["pyarrow", "datasets"]}


def export(
    path: CassettePath,
    to: Annotated[Format, typer.Option("--to", help="What to make of it.", show_default=False)],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to.  [default: the cassette's name here, with -jsonl, .parquet or -dataset]",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Export one step.  [default: all]", show_default=False)
    ] = None,
    tokenizer: TokenizerPath = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is there already.")
    ] = False,
    json: Json = False,
) -> None:
    """Export the trajectories of a cassette, for other tools.

    `jsonl` makes a directory with a file for each step, in the columns that verl writes to its
    `trainer.rollout_data_dir` and reads in its rollout viewer; validation is in `val/`. `parquet`
    makes one file, `hf-dataset` a data set for `datasets.load_from_disk`: with all that is known of
    each trajectory, tokens and log-probs included.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        for package in _PACKAGES.get(to, []):
            needed(package)
        cassette = opened(path)
        decode = None if tokenizer is None else decoder(tokenizer)
        output = output or Path(cassette.path.resolve().name + _SUFFIXES[to])
        keys = [each.key for each in cassette.interactions(step)]
        at = [(cassette, key) for key in keys]
        counted = _Counted(_rows(opening(tracked(at, "Exporting", errors)), decode))
        with written(output, overwrite=overwrite, suffixes=_SUFFIXES_INSIDE.get(to)) as made:
            _WRITERS[to](counted, made)
            if not counted.count:
                raise _no_rows(path)
    if counted.undecoded and to is Format.JSONL:
        warn(errors, "responses are token ids: show them as text with --tokenizer DIR")
    if json:
        print_json({"output": str(output), "rows": counted.count})
    else:
        display(console, Text(visible(f"{counted.count} trajectories of {path} in {output}")))


class _Counted:
    """Trajectories, counted as they go by.

    Attributes:
        count: How many have gone by.
        undecoded: Whether there was a response among them of which only the tokens are known.
    """

    def __init__(self, rows: Iterable[Trajectory]) -> None:
        self._rows = rows
        self.count = 0
        self.undecoded = False

    def __iter__(self) -> Iterator[Trajectory]:
        for row in self._rows:
            self.count += 1
            self.undecoded |= row.response is None and row.response_ids is not None
            yield row


def _rows(
    interactions: Iterable[Interaction], decode: Callable[[list[int]], str] | None
) -> Iterator[Trajectory]:
    for interaction in interactions:
        for row in interaction.trajectories:
            yield row if decode is None else row.decoded(decode)


def _write_jsonl(rows: Iterable[Trajectory], output: Path) -> None:
    """Write a file for each step, and a directory for each phase but training."""
    output.mkdir()
    for row in rows:
        directory = output if row.phase == TRAIN else output / row.phase
        directory.mkdir(exist_ok=True)
        line = json_library.dumps(viewed(row), ensure_ascii=False)
        with (directory / f"{row.step}.jsonl").open(
            "a", encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(line + "\n")


def _write_parquet(rows: Iterable[Trajectory], output: Path) -> None:
    needed("pyarrow.parquet").write_table(to_arrow(rows), output)


def _write_dataset(rows: Iterable[Trajectory], output: Path) -> None:
    library: Any = needed("datasets")
    library.disable_progress_bars()
    to_dataset(rows).save_to_disk(output)


_WRITERS = {
    Format.JSONL: _write_jsonl,
    Format.PARQUET: _write_parquet,
    Format.HF_DATASET: _write_dataset,
}


def _no_rows(path: Path) -> CassetteError:
    return CassetteError(
        f"{path} shows no trajectories: its responses are no batches of rows.",
        fixes=[f"Look at what it holds: rollout-cassettes show {path} --step N"],
    )
