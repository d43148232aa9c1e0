"""The command ``import``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes import dumps
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.dumps.importer import ADAPTERS
from rollout_cassettes.errors import named_steps

AdapterName = enum.Enum("AdapterName", {name: name for name in ADAPTERS})  # type: ignore[misc]


def import_dumps(
    source: Annotated[
        Path,
        typer.Argument(
            help="verl's dump_dir, or the experiment's or the steps' directory in it; or the path of "
            "slime's debug data, with {rollout_id} in it, or their directory."
        ),
    ],
    destination: Annotated[Path, typer.Argument(help="The cassette's directory: a new one.")],
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Load the dumps, which runs whatever code is in them."),
    ] = False,
    adapter: Annotated[
        AdapterName | None,
        typer.Option(help="What is to replay them. [default: found out from the dumps]"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and all else to stderr.")
    ] = False,
) -> None:
    """Make a cassette of what verl's SkipManager dumped, or of slime's debug rollout data.

    Steps that were dumped in part are left out, with a warning. Exits with status 1, and leaves
    nothing at the destination, if anything else is wrong. Dumps of verl's need
    `rollout_cassettes[verl]`.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        result = dumps.import_dumps(
            source,
            destination,
            adapter=None if adapter is None else adapter.value,
            trust_pickle=trust_pickle,
            progress=lambda files: tracked(files, "Importing", errors),
        )
    for step, why in result.incomplete.items():
        warning = f" step {step} was left out, its dump is not whole: {why}"
        errors.print(Text.assemble(("Warning:", "yellow"), warning), soft_wrap=True)
    if json:
        typer.echo(result.to_json())
        return
    console.print(
        f"{named_steps(result.steps).capitalize()} of {result.source} imported to "
        f"{result.destination}, for the adapter {result.adapter}, "
        f"{readable_bytes(result.nbytes)}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
