"""The command ``shrink``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes import shrinking
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.output import Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import named_steps
from rollout_cassettes.session.steps import Steps
from rollout_cassettes.shrinking import Shrunk

_WORDS = ("read", "all")
_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def shrink(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="The large cassette's directory.")],
    destination: Annotated[
        Path, typer.Argument(metavar="DST", help="The small one's directory: a new one.")
    ],
    *,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep N rows of each interaction: its first prompts with all of their rows, as "
            "many as have no more than N, and one prompt at least.  [default: all]",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="STEPS", help="Keep these steps: 1-2,8.  [default: all]", show_default=False
        ),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Keep these fields of responses: a,b. read: those that tracked replays have read; "
            "all: all.  [default: read, where a replay was tracked, else all]",
            show_default=False,
        ),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Leave out prompts, and then steps, until it takes no more than this: 200k, 1.5M.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a small cassette of a large one, which replays: for git, and for bug reports.

    Whole prompts are kept: all rows that share one. Replays with `track_reads=True` say which fields
    are needed. Needs neither torch nor a framework. Exits with status 1, and leaves nothing at the
    destination, if it can't be done.
    """
    most = None if max_bytes is None else _size(max_bytes)
    chosen = _steps(steps)
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        shrunk = shrinking.shrink(
            source,
            destination,
            rows=rows,
            steps=chosen,
            fields=fields if fields is None or fields in _WORDS else _names(fields),
            max_bytes=most,
            progress=lambda keys: tracked(keys, "Reading", errors),
        )
    if json:
        print_json({**vars(shrunk), "source": str(source), "path": str(destination)})
    else:
        display(console, Text(visible(_told(shrunk, source, destination))))


def _told(shrunk: Shrunk, source: Path, destination: Path) -> str:
    parts = [named_steps(shrunk.steps)]
    if shrunk.rows_before is not None:
        parts.append(f"{shrunk.rows} of {shrunk.rows_before} rows")
    parts.append(f"{readable_bytes(shrunk.nbytes)} of {readable_bytes(shrunk.nbytes_before)}")
    told = f"{destination}: {', '.join(parts)} of {source}"
    return f"{told}\nWithout {', '.join(shrunk.dropped)}" if shrunk.dropped else told


def _steps(text: str | None) -> list[int] | None:
    try:
        return None if text is None else Steps.parse(text).listed
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--steps") from error


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _size(text: str) -> int:
    """Return a size in bytes: ``200k``, ``1.5M``, ``200 kB``, ``4096``."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?) ?([kKMG]?)B?", text.strip())
    number = 0 if found is None else int(float(found[1]) * _FACTORS[found[2].replace("K", "k")])
    if number < 1:
        raise typer.BadParameter(f"--max-bytes is written 200k, 1.5M or 4096, not {text!r}")
    return number
