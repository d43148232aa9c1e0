"""The command ``verify``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.cassette import Cassette, Interaction
from rollout_cassettes.cassette.manifest import SUFFIX
from rollout_cassettes.cassette.tensors import SUFFIXES
from rollout_cassettes.cli.failure import reported
from rollout_cassettes.cli.opening import by_cassette, found_in, opening, places
from rollout_cassettes.cli.output import Json, display, print_json, warn
from rollout_cassettes.cli.progress import tracked
from rollout_cassettes.display.amounts import readable_bytes
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteCorruptError, CassetteError, CassetteVersionError

_NOT_PACKAGES = frozenset({"python"})


@dataclass(frozen=True)
class Damage:
    """A file that can't be trusted.

    Attributes:
        path: The file.
        what: What is wrong with it.
    """

    path: str
    what: str


@dataclass(frozen=True)
class Report:
    """What was found of a cassette.

    Attributes:
        path: Its directory.
        interactions: How many it has.
        nbytes: The size of those that are sound, in bytes.
        damage: The files that are not what was written.
        strays: Tensors files without a manifest: what an interrupted recording left.
        recorded_with: The versions that it was recorded with, by package.
        installed: The versions of these packages here; None for what is not installed.
    """

    path: str
    interactions: int
    nbytes: int
    damage: list[Damage]
    strays: list[str]
    recorded_with: dict[str, list[str]]
    installed: dict[str, str | None]


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Cassettes, or directories with cassettes in them.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Check every file against the hash that was written with it, and the version of its format.

    Names each damaged file, and exits with status 1 if there is one. Also tells which packages it
    was recorded with in other versions than are installed here; that is no error.
    """
    console, errors = Console(), Console(stderr=True)
    with reported(errors):
        cassettes = found_in(paths)
    reports = [
        _report(cassette, opening(at))
        for cassette, at in by_cassette(tracked(places(cassettes), "Verifying", errors))
    ]
    sound = not any(report.damage for report in reports)
    if json:
        print_json({"sound": sound, "cassettes": list(map(asdict, reports))})
    for report in reports:
        _tell(report, console, errors, json=json)
    if not sound:
        raise typer.Exit(1)


def _report(cassette: Cassette, interactions: Iterable[Interaction]) -> Report:
    damage: list[Damage] = []
    versions: dict[str, set[str]] = {}
    nbytes = 0
    for interaction in interactions:
        try:
            interaction.verify()
            nbytes += interaction.nbytes
            for name, recorded in interaction.manifest.versions.items():
                versions.setdefault(name, set()).add(recorded)
        except (CassetteCorruptError, CassetteVersionError) as error:
            damage.append(Damage(str(error.path), error.what))
        except (CassetteError, OSError) as error:
            damage.append(Damage(str(interaction.path), str(error)))
    return Report(
        path=str(cassette.path),
        interactions=len(cassette.keys),
        nbytes=nbytes,
        damage=damage,
        strays=_strays(cassette),
        recorded_with={name: sorted(recorded) for name, recorded in versions.items()},
        installed={name: _installed(name) for name in versions if name not in _NOT_PACKAGES},
    )


def _strays(cassette: Cassette) -> list[str]:
    stems = {path.name.removesuffix(SUFFIX) for path in cassette.path.glob(f"step-*{SUFFIX}")}
    return [
        str(path)
        for suffix in SUFFIXES.values()
        for path in sorted(cassette.path.glob(f"step-*{suffix}"))
        if path.name.removesuffix(suffix) not in stems
    ]


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _tell(report: Report, console: Console, errors: Console, *, json: bool) -> None:
    if not json:
        count = f"{report.interactions} interaction{'s' if report.interactions != 1 else ''}"
        verdict = (f"{len(report.damage)} damaged", "red") if report.damage else ("sound", "green")
        facts = f"{visible(report.path)}: {count}, {readable_bytes(report.nbytes)}, "
        display(console, Text.assemble(facts, verdict))
        for line in _others(report):
            display(console, Text(f"  {line}", style="dim"))
    for damage in report.damage:
        errors.print(Text.assemble(("Error:", "red"), f" {visible(damage.what)}"), soft_wrap=True)
    for stray in report.strays:
        warn(errors, f"{stray} has no manifest: an interrupted recording left it.")


def _others(report: Report) -> Sequence[str]:
    """Name the packages of which another version is installed here."""
    return [
        f"recorded with {name} {', '.join(report.recorded_with[name])}; "
        + ("not installed here" if here is None else f"here it is {here}")
        for name, here in report.installed.items()
        if report.recorded_with[name] != [here]
    ]
