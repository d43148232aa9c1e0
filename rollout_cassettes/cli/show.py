"""The command ``show``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rollout_cassettes.cassette import Cassette, Interaction, Key
from rollout_cassettes.cassette.text import file_lines, manifest_lines, tensors_lines
from rollout_cassettes.cassette.view import cassette_view, interaction_view
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import opened, opening, places
from rollout_cassettes.cli.output import Json, display, print_json
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.cli.tokenizer import TokenizerPath, decoder
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError, spans
from rollout_cassettes.trajectories import Trajectory
from rollout_cassettes.trajectories.records import record
from rollout_cassettes.trajectories.view import trajectory_view

_MANIFEST_APART = frozenset({"trees", "tensors", "fingerprint"})


def show(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The cassette's directory; with --text a file of it too.",
            show_default=False,
        ),
    ],
    *,
    step: Annotated[int | None, typer.Option(help="Show one step.", show_default=False)] = None,
    row: Annotated[
        int | None,
        typer.Option(help="Show one trajectory of the step, counted from 0.", show_default=False),
    ] = None,
    phase: Annotated[str, typer.Option(help="Of which phase, with --step.")] = "train",
    index: Annotated[int, typer.Option(help="Which of the step's interactions, with --step.")] = 0,
    tokenizer: TokenizerPath = None,
    text: Annotated[
        bool, typer.Option("--text", help="Show all values, a line each, as `git diff` needs it.")
    ] = False,
    tolerant: Annotated[
        bool,
        typer.Option(
            "--tolerant", help="With --text and a file: if it can't be read, say so as text."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show what is in a cassette: its steps, the rows of a step, or one trajectory.

    A trajectory is shown with its prompt, and its response with a shade for each token: the darker,
    the less probable it was. Needs neither torch nor a framework.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        if row is not None and step is None:
            raise typer.BadParameter("--row needs --step")
        if text and (json or row is not None):
            raise typer.BadParameter("--text goes with neither --json nor --row")
        if text and path.is_file():
            _print_lines(_tolerated(path) if tolerant else file_lines(path))
            return
        cassette = opened(path)
        if text:
            keys = [each.key for each in cassette.interactions(step)]
            _print_lines(_text(opening((cassette, key) for key in keys)))
        elif step is None:
            _show_cassette(cassette, console, errors, json=json)
        else:
            interaction = cassette.interaction(_key(cassette, step, phase, index))
            rows = _decoded(interaction.trajectories, tokenizer)
            if row is not None:
                _show_trajectory(_chosen(interaction, rows, row), console, json=json)
            elif json:
                print_json({**_facts(interaction), "trajectories": list(map(record, rows))})
            else:
                display(console, interaction_view(interaction, rows))


def _show_cassette(cassette: Cassette, console: Console, errors: Console, *, json: bool) -> None:
    read = [
        (each.manifest, each.figures, _facts(each))
        for each in opening(tracked(places([cassette]), "Reading", errors))
    ]
    if json:
        print_json({"path": str(cassette.path), "interactions": [facts for *_, facts in read]})
    else:
        manifests, figures = [each[0] for each in read], [each[1] for each in read]
        display(console, cassette_view(str(cassette.path), manifests, figures))


def _show_trajectory(row: Trajectory, console: Console, *, json: bool) -> None:
    if json:
        print_json(record(row))
    else:
        display(console, trajectory_view(row))


def _facts(interaction: Interaction) -> dict[str, Any]:
    """Return what is known of an interaction: the manifest without trees, and its figures."""
    manifest = {n: v for n, v in vars(interaction.manifest).items() if n not in _MANIFEST_APART}
    figures = asdict(interaction.figures)
    return {**manifest, **figures.pop("statistics"), **figures}


def _key(cassette: Cassette, step: int, phase: str, index: int) -> Key:
    """Return the key that is asked for; where a step has one interaction alone, that one's."""
    keys = [each.key for each in cassette.interactions(step)]
    wanted = Key(step, phase, index)
    return keys[0] if len(keys) == 1 and wanted == Key(step) else wanted


def _decoded(rows: list[Trajectory], tokenizer: Path | None) -> list[Trajectory]:
    if tokenizer is None:
        return rows
    decode = decoder(tokenizer)
    return [row.decoded(decode) for row in rows]


def _chosen(interaction: Interaction, rows: list[Trajectory], number: int) -> Trajectory:
    if 0 <= number < len(rows):
        return rows[number]
    held = f"holds the rows {spans(range(len(rows)))}" if rows else "holds no rows"
    raise CassetteError(
        f"There is no row {number} in {interaction.key} of {interaction.path.parent}, which {held}.",
        fixes=[
            f"List them: rollout-cassettes show {interaction.path.parent} --step {interaction.step}"
        ],
    )


def _text(interactions: Iterable[Interaction]) -> Iterator[str]:
    for interaction in interactions:
        yield f"== {interaction.path.name}"
        yield from manifest_lines(interaction.manifest, interaction.path)
        yield f"== {interaction.manifest.tensors.file}"
        yield from tensors_lines(interaction.tensors)


def _tolerated(path: Path) -> Iterator[str]:
    """Give the lines of a file, or why it has none: else git would show no file's changes at all."""
    try:
        yield from file_lines(path)
    except CassetteError as error:
        yield visible(error.what.replace(str(path), path.name))  # git's own copy has another path


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
