"""How cassettes and interactions look, on terminals and as the text of notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from rollout_cassettes.display.heading import heading
from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.tables import rows_table, stacked, steps_table, trends
from rollout_cassettes.trajectories import Figures, Trajectory

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
    return stacked(_heading(title, manifests, figures), steps_table(figures), trends(figures))


def interaction_view(interaction: Interaction, rows: Sequence[Trajectory]) -> RenderableType:
    """Make the view of an interaction: what it is, its rows, and what else it holds.

    Args:
        interaction: It was opened with ``numpy=True``.
        rows: Its trajectories, with text if they were decoded.
    """
    title = f"{interaction.path.parent}: {interaction.key}"
    parts = {"request": interaction.request, "response": interaction.response}
    values = [f"{line}\n" for name, part in parts.items() for line in outline({name: part})]
    return stacked(
        _heading(title, [interaction.manifest], [interaction.figures]),
        rows_table(rows) if rows else None,
        Text("".join(values).rstrip()),
    )


def _heading(title: str, manifests: Sequence[Manifest], figures: Sequence[Figures]) -> Text:
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
