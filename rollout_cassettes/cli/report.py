"""The command ``report``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette import Cassette, Key
from rollout_cassettes.cli.destination import written
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import by_cassette, opened, opening, places
from rollout_cassettes.cli.output import CassettePath, Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.cli.tokenizer import Decode, TokenizerPath, decoder
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError, unreadable
from rollout_cassettes.report import Criteria, Gathered, Part, about, gather, write_page


def report(
    path: CassettePath,
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER]", help="Another's, to be shown beside it.", show_default=False
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to.  [default: the cassette's name here, with -report.html]",
            show_default=False,
        ),
    ] = None,
    tokenizer: TokenizerPath = None,
    pass_reward: Annotated[
        float | None,
        typer.Option(
            help="The reward from which on a trajectory passes.  "
            "[default: as its reward function said, else where rewards are 0 or 1, -1 or 1]",
            show_default=False,
        ),
    ] = None,
    max_response_length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many tokens a response may have: those that have as many were truncated.  "
            "[default: the longest length, where several responses have it]",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is there already.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a report: one HTML file with trends, steps and trajectories, to be opened in a browser.

    It needs no network, and shows text, tokens and figures of one cassette, or of two side by side.
    Exits with status 1 if an interaction can't be read; the others are shown all the same.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        cassettes = [opened(path)] if other is None else [opened(path), opened(other)]
        decode = None if tokenizer is None else decoder(tokenizer)
        output = output or Path(f"{path.resolve().name}-report.html")
        criteria = Criteria(pass_reward, max_response_length)
        at = tracked(places(cassettes), "Reading", errors)
        parts: list[Part] = []
        with written(output, overwrite=overwrite) as made:
            rows = write_page(made, _parts(at, parts, criteria, decode))
            nbytes = made.stat().st_size
    wrong = [line for part in parts for line in part.wrong]
    for line in wrong:
        errors.print(Text.assemble(("Error:", "red"), f" {visible(line)}"), soft_wrap=True)
    if json:
        print_json({"output": str(output), "rows": rows, "nbytes": nbytes, "errors": wrong})
    else:
        told = f"{rows} trajectories in {output}, {readable_bytes(nbytes)}: open it in a browser"
        display(console, Text(visible(told)))
    if wrong:
        raise typer.Exit(1)


def _parts(
    at: Iterable[tuple[Cassette, Key]],
    parts: list[Part],
    criteria: Criteria,
    decode: Decode | None,
) -> Iterator[Part]:
    """Give a part for each cassette, and keep it in the list."""
    for cassette, places_in_it in by_cassette(at):
        part = Part(visible(str(cassette.path)))
        part.interactions = _gathered(places_in_it, part, criteria, decode)
        parts.append(part)
        yield part


def _gathered(
    at: Iterable[tuple[Cassette, Key]], part: Part, criteria: Criteria, decode: Decode | None
) -> Iterator[Gathered]:
    """Give the interactions that can be read, and tell the part of the others, and of the whole."""
    adapters: set[str] = set()
    for interaction in opening(at):
        try:
            yield gather(interaction, criteria, decode)
        except (CassetteError, OSError) as error:
            part.wrong.append(unreadable(error, interaction.path))
        else:
            adapters.add(interaction.manifest.adapter)
            part.about = about(interaction.manifest, adapters)
