"""The file: a page whose scripts, styles and data are all in it, and which may load nothing else.

What is shown first stands first, so that a browser shows it while it still reads the blocks. They
are known before the figures of all steps are, though: so they wait in a scratch file.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from rollout_cassettes.report.gathering import Gathered
from rollout_cassettes.trajectories.records import plain

SCRIPTS = (
    *("elements", "amounts", "blocks", "charts", "tables", "comparing"),
    *("overview", "step", "tokens", "trajectory", "keys", "main"),
)
"""The scripts in ``assets/``, in the order in which they stand in the page."""

_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_hash}'; style-src '{style_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
"""
_BLOCK = '<script type="text/plain" id="{name}">{block}</script>\n'


@dataclass
class Part:
    """One of a report's cassettes.

    Attributes:
        name: What it is called on the page.
        interactions: Its interactions, one after the other; each is read as it is asked for.
        about: What else is known of it, once all interactions were read: see :func:`about`.
        wrong: What could not be read, one line each; likewise.
    """

    name: str
    interactions: Iterable[Gathered] = ()
    about: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def write_page(output: Path, parts: Iterable[Part]) -> int:
    """Write a report.

    Args:
        output: Where to.
        parts: One cassette, or two that are shown side by side, one after the other.

    Returns:
        How many trajectories it shows.
    """
    with TemporaryFile("w+", encoding="ascii", dir=output.parent) as scratch:
        shown = [_shown(number, part, scratch) for number, part in enumerate(parts)]
        with output.open("w", encoding="utf-8") as page:
            page.write(_opening(" and ".join(cassette["name"] for cassette in shown), shown))
            scratch.seek(0)
            shutil.copyfileobj(scratch, page, 1 << 20)
            page.write("</body>\n</html>\n")
    return sum(step["rows"] for cassette in shown for step in cassette["steps"])


def _shown(number: int, part: Part, scratch: IO[str]) -> dict[str, Any]:
    """Return what the page shows of a cassette from the start, and put its blocks aside."""
    steps = []
    for interaction in part.interactions:
        for name, block in interaction.blocks.items():
            scratch.write(_BLOCK.format(name=f"{number}/{interaction.name}/{name}", block=block))
        steps.append(interaction.figures())
    return {"name": part.name, "about": part.about, "wrong": part.wrong, "steps": steps}


def _opening(title: str, shown: Sequence[dict[str, Any]]) -> str:
    """Return the page up to where its blocks begin."""
    style = _asset("style.css")
    # Strict, and in a scope of its own: an element's id would be a global name there.
    script = '"use strict";\n(() => {\n' + "".join(_asset(f"{n}.js") for n in SCRIPTS) + "})();\n"
    head = _HEAD.format(
        script_hash=_hash(script), style_hash=_hash(style), title=html.escape(title), style=style
    )
    data = json.dumps(plain(list(shown)), separators=(",", ":")).replace("<", "\\u003c")
    given = f'<script type="application/json" id="report">{data}</script>\n'
    return head + _asset("body.html") + given + f"<script>{script}</script>\n"


def _asset(name: str) -> str:
    return (files("rollout_cassettes.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
