"""How cassettes and interactions look, on terminals and as the text of notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories import Figures, Trajectory
from rollout_cassettes.trajectories.heading import heading
from rollout_cassettes.trajectories.sheets import rows_sheet, stacked, steps_sheet, trends_table

if TYPE_CHECKING:
    from rollout_cassettes.cassette.interaction import Interaction
    from rollout_cassettes.cassette.manifest import Manifest


def cassette_view(
    title: str, manifests: Sequence[Manifest], figures: Sequence[Figures]
) -> RenderableType:
    """Make the view of a cassette: what it is, its steps, and how rewards and lengths go.

    Args:
        title: Its directory.
        manifests: The manifests of its interactions.
        figures: Their figures.
    """
    return stacked(
        _heading(title, manifests, figures), steps_sheet(figures).rich(), trends_table(figures)
    )


def interaction_view(interaction: Interaction, rows: Sequence[Trajectory]) -> RenderableType:
    """Make the view of an interaction: what it is, its rows, and what else it holds.

    Args:
        interaction: The interaction, opened with ``numpy=True``.
        rows: Its trajectories, with text if they were decoded.
    """
    title = f"{interaction.path.parent}: {interaction.key}"
    parts = {"request": interaction.request, "response": interaction.response}
    values = [f"{line}\n" for name, part in parts.items() for line in outline({name: part})]
    return stacked(
        _heading(title, [interaction.manifest], [interaction.figures]),
        rows_sheet(rows).rich() if rows else None,
        Text("".join(values).rstrip()),
    )


def title_lines(title: str, manifests: Sequence[Manifest], figures: Sequence[Figures]) -> list[str]:
    """Return the lines that say what it is, from the last of the manifests."""
    last = manifests[-1]
    versions = {n: v for n, v in last.versions.items() if n not in ("python", "rollout_cassettes")}
    return heading(
        title,
        figures,
        adapters=sorted({manifest.adapter for manifest in manifests}),
        host=last.host,
        versions=versions or last.versions,
        metadata=last.metadata,
    )


def _heading(title: str, manifests: Sequence[Manifest], figures: Sequence[Figures]) -> Text:
    first, *others = map(visible, title_lines(title, manifests, figures))
    return Text.assemble((first, "bold"), *(f"\n{line}" for line in others))
