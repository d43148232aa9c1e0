"""The command ``diff``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rollout_cassettes.cassette import Cassette, Key
from rollout_cassettes.cassette.comparison import MEASURED, Comparison, Difference, compare
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import opened
from rollout_cassettes.cli.output import Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.sheet import table
from rollout_cassettes.display.visible import visible


def diff(
    a: Annotated[Path, typer.Argument(help="A cassette's directory.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another's.", show_default=False)],
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="A field of rows that is not compared; may be given several times. "
            f"[default: {', '.join(MEASURED)}, where verl keeps durations]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two cassettes: for each step the first row, field and token that differ.

    Rows are compared to the bit. Uids, versions, durations and random states are not compared. Rows
    of verl are paired by prompt and session, since they come in the order in which they finish.
    Exits with status 1 if anything differs.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        ours, theirs = opened(a), opened(b)
        keys = sorted({*ours.keys, *theirs.keys})
        found = {
            key: _compared(ours, theirs, key, MEASURED if ignore is None else ignore)
            for key in tracked(keys, "Comparing", errors)
        }
    differ = any(each.first is not None for each in found.values())
    if json:
        print_json({"equal": not differ, "interactions": [_facts(*item) for item in found.items()]})
    else:
        display(console, _table(found))
    if differ:
        raise typer.Exit(1)


def _compared(ours: Cassette, theirs: Cassette, key: Key, ignored: Sequence[str]) -> Comparison:
    for cassette, name in ((theirs, "A"), (ours, "B")):
        if key not in cassette.keys:
            return Comparison(first=Difference(f"only in {name}"))
    return compare(ours.interaction(key), theirs.interaction(key), ignored)


def _facts(key: Key, found: Comparison) -> dict[str, Any]:
    return {**asdict(key), **asdict(found)}


def _table(found: dict[Key, Comparison]) -> Table:
    made = table("interaction", "rows", "differ", "first difference", left=["interaction"])
    last = made.columns[-1]
    last.justify, last.no_wrap, last.overflow = "left", False, "fold"
    for key, each in found.items():
        rows = " / ".join(dict.fromkeys(str(count) for count in each.rows if count))
        equal = Text("equal", style="green")
        made.add_row(
            str(key),
            rows,
            str(each.differing or ""),
            equal if each.first is None else Text(visible(str(each.first)), style="red"),
        )
    return made
