"""Measure recording and loading against what verl does, on the reference step.

Run it by hand: `python tests/benchmarks/recording.py`. Both sides run in one go, alternating, so
that a noisy machine is noisy for both; what is printed are medians, and ratios to verl's figure.

Sides: for V0's padded DataProto, `DataProto.save_to_disk` and `load_from_disk` (pickle); for V1's
jagged payload, `torch.save` and `torch.load`, as verl 0.9.1's SkipManager does (it does not wait
for the disk; here its file is synced too, for "until durable").
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import rollout_cassettes as rc
from rollout_cassettes.display.amounts import readable_bytes

sys.path.insert(0, str(Path(__file__).parent))
import reference_step


@dataclass(frozen=True)
class Figures:
    """What one side took.

    Attributes:
        held_up: Seconds until the training loop goes on.
        durable: Seconds until the step is on the disk.
        nbytes: Bytes on the disk.
        load: Seconds until the whole batch is in memory again.
    """

    held_up: float
    durable: float
    nbytes: int
    load: float


def measure_ours(batch: Any, directory: Path) -> Figures:
    """Record a function that returns the batch at once, and open what was recorded."""
    path = directory / "cassette"

    @rc.adapters.function(step_of=lambda: 1)
    def rollout():
        return batch

    with rc.record(path=path):
        started = time.perf_counter()
        rollout()
        held_up = time.perf_counter() - started
    nbytes = sum(file.stat().st_size for file in path.iterdir())
    with rc.replay(path=path):
        started = time.perf_counter()
        rollout()
        load = time.perf_counter() - started
    return Figures(held_up, held_up, nbytes, load)


def measure_verl(
    save: Callable[[Path], None], load: Callable[[Path], Any], directory: Path
) -> Figures:
    """Save and load as verl does."""
    path = directory / "verl"
    started = time.perf_counter()
    save(path)
    held_up = time.perf_counter() - started
    with path.open("rb") as file:
        os.fsync(file.fileno())
    durable = time.perf_counter() - started
    started = time.perf_counter()
    load(path)
    return Figures(held_up, durable, path.stat().st_size, time.perf_counter() - started)


def compare(name: str, batch: Any, save: Any, load: Any, rounds: int) -> tuple[Figures, Figures]:
    """Run both sides in turn and return the medians: ours, verl's."""
    ours, verl = [], []
    for _ in range(rounds):
        for figures, measure in (
            (verl, lambda directory: measure_verl(save, load, directory)),
            (ours, lambda directory: measure_ours(batch, directory)),
        ):
            directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
            figures.append(measure(directory))
            shutil.rmtree(directory)
            gc.collect()
    return _median(ours), _median(verl)


def _median(figures: list[Figures]) -> Figures:
    columns = ([getattr(each, name) for each in figures] for name in Figures.__dataclass_fields__)
    held_up, durable, nbytes, load = (statistics.median(column) for column in columns)
    return Figures(held_up, durable, int(nbytes), load)


def run(prompts: int, rounds: int) -> dict[str, tuple[Figures, Figures]]:
    """Compare both containers; the keys are the rows of the table."""
    from verl import DataProto

    step = reference_step.make(prompts=prompts)
    padded = reference_step.as_dataproto(step)
    payload = reference_step.as_v1_payload(step)
    return {
        "DataProto, padded (V0)": compare(
            "v0", padded, padded.save_to_disk, DataProto.load_from_disk, rounds
        ),
        "TensorDict, jagged (V1)": compare(
            "v1",
            payload,
            lambda path: torch.save(payload, path),
            lambda path: torch.load(path, weights_only=False),
            rounds,
        ),
    }


def render(results: dict[str, tuple[Figures, Figures]]) -> Table:
    """Make the table: verl, ours, and the ratio of the two."""
    table = Table(title="One step of 1,024 trajectories: verl / rollout_cassettes (ratio)")
    for column in ("container", "loop held up", "until durable", "bytes", "load"):
        table.add_column(column, justify="left" if column == "container" else "right")
    for name, (ours, verl) in results.items():
        table.add_row(
            name,
            _seconds(verl.held_up, ours.held_up),
            _seconds(verl.durable, ours.durable),
            f"{readable_bytes(verl.nbytes)} / {readable_bytes(ours.nbytes)}"
            f" (1/{verl.nbytes / ours.nbytes:.1f})",
            _seconds(verl.load, ours.load),
        )
    return table


def _seconds(verl: float, ours: float) -> str:
    return f"{verl:.3f} s / {ours:.3f} s (x{ours / verl:.2f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=reference_step.PROMPTS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    Console().print(render(run(options.prompts, options.rounds)))


if __name__ == "__main__":
    main()
