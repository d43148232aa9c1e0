"""The commands ``pack`` and ``unpack``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette.repacking import repack
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import opened, opening, places
from rollout_cassettes.cli.output import CassettePath, Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.display.visible import visible


def pack(path: CassettePath, json: Json = False) -> None:
    """Compress the files of a cassette with zstd, in place.

    What they hold stays equal to the bit. Each interaction is whole at any time, so that it can be
    interrupted, and run again.
    """
    _repack(path, "zstd", json=json)


def unpack(path: CassettePath, json: Json = False) -> None:
    """Store the tensors of a cassette as plain safetensors files, in place.

    Any safetensors reader opens them, and reads of them only what is asked for. What they hold
    stays equal to the bit. Each interaction is whole at any time.
    """
    _repack(path, None, json=json)


def _repack(path: Path, compression: str | None, *, json: bool) -> None:
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        cassette = opened(path)
        before = sum(each.nbytes for each in cassette.interactions())
        what = "Packing" if compression else "Unpacking"
        with Writer(path, compression) as writer:
            changed = [
                repack(interaction, writer)
                for interaction in opening(tracked(places([cassette]), what, errors))
            ]
        after = sum(each.nbytes for each in opened(path).interactions())
    if json:
        facts = {"path": str(path), "changed": sum(changed), "interactions": len(changed)}
        print_json({**facts, "nbytes_before": before, "nbytes": after})
    else:
        told = f"{path}: {sum(changed)} of {len(changed)} interactions changed, "
        told += f"{readable_bytes(before)} before, {readable_bytes(after)} now"
        display(console, Text(visible(told)))
