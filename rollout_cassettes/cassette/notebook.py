"""How cassettes and interactions show themselves in notebooks.

A notebook shows what a cell ends with, whatever its size: so no more is read than can be looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from rollout_cassettes.cassette.view import cassette_view, interaction_view, title_lines
from rollout_cassettes.display.html import element, escaped, folded, lines, titled, whole
from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.plain import as_text
from rollout_cassettes.errors import CassetteError, spans, unreadable
from rollout_cassettes.trajectories.html import spark_html, trajectory_html
from rollout_cassettes.trajectories.sheets import rows_sheet, stacked, steps_sheet, trends
from rollout_cassettes.trajectories.view import trajectory_view

if TYPE_CHECKING:
    from rollout_cassettes.cassette.cassette import Cassette
    from rollout_cassettes.cassette.interaction import Interaction
    from rollout_cassettes.cassette.key import Key
    from rollout_cassettes.cassette.manifest import Manifest

_MOST_ROWS = 20
_MOST_INTERACTIONS = 50
_MOST_BYTES = 500_000_000  # of tensors, decompressed


def cassette_bundle(cassette: Cassette) -> dict[str, str]:
    """Show a cassette: its steps, and how rewards and response lengths go.

    Of a large one, interactions at equal distances are read.
    """
    wrong: list[str] = []
    sound: list[tuple[Key, Manifest]] = []
    for key in cassette.keys:
        try:
            sound.append((key, cassette.interaction(key).manifest))
        except (CassetteError, OSError) as error:
            wrong.append(unreadable(error, key))
    read = []
    for key, manifest in _few(sound):
        try:
            read.append((manifest, cassette.interaction(key).figures))
        except (CassetteError, OSError) as error:
            wrong.append(unreadable(error, key))
    if len(read) < len(sound):
        wrong.append(f"{len(read)} of {len(cassette.keys)} interactions are shown.")
    if not read:
        text = "\n".join([f"{cassette.path}: steps {spans(cassette.steps)}", *wrong])
        return {"text/plain": text, "text/html": lines(text)}
    manifests, figures = [each[0] for each in read], [each[1] for each in read]
    title = str(cassette.path)
    sparks = "".join(spark_html(*trend) for trend in trends(figures))
    return {
        "text/plain": as_text(stacked(cassette_view(title, manifests, figures), *map(Text, wrong))),
        "text/html": whole(
            titled(title_lines(title, manifests, figures)),
            steps_sheet(figures).html(),
            element("table", sparks, "border-collapse:collapse") if sparks else "",
            lines("\n".join(wrong)) if wrong else "",
        ),
    }


def interaction_bundle(interaction: Interaction) -> dict[str, str]:
    """Show an interaction: its first rows, one trajectory, and what else it holds; or why it can't be read."""
    try:
        return _interaction_bundle(interaction)
    except (CassetteError, OSError) as error:
        text = f"{interaction.path.parent}: {interaction.key}\n{error}"
        return {"text/plain": text, "text/html": lines(text)}


def _interaction_bundle(interaction: Interaction) -> dict[str, str]:
    rows = interaction.trajectories
    shown = rows[:_MOST_ROWS]
    more = f"{len(shown)} of {len(rows)} rows are shown." if len(shown) < len(rows) else ""
    values = {"request": interaction.request, "response": interaction.response}
    title = f"{interaction.path.parent}: {interaction.key}"
    first = [trajectory_view(rows[0])] if rows else []
    return {
        "text/plain": as_text(
            stacked(interaction_view(interaction, shown), *([Text(more)] if more else []), *first)
        ),
        "text/html": whole(
            titled(title_lines(title, [interaction.manifest], [interaction.figures])),
            rows_sheet(shown).html() if rows else "",
            element("div", escaped(more), "opacity:0.7") if more else "",
            trajectory_html(rows[0]) if rows else "",
            folded("request and response", lines("\n".join(outline(values))), is_open=not rows),
        ),
    }


def _few(sound: list[tuple[Key, Manifest]]) -> list[tuple[Key, Manifest]]:
    """Return interactions at equal distances, as many as can be read at once."""
    size = sum(manifest.tensors.raw_size for _, manifest in sound)
    fitting = len(sound) if size <= _MOST_BYTES else len(sound) * _MOST_BYTES // size
    count = max(1, min(len(sound), _MOST_INTERACTIONS, fitting))
    return [sound[number * len(sound) // count] for number in range(count)] if sound else []
