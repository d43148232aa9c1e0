"""One trajectory: its prompt, its response with a shade for each token, its rewards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rollout_cassettes.display import shading
from rollout_cassettes.display.amounts import readable_number
from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.sparkline import sparkline
from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories.sheets import stacked
from rollout_cassettes.trajectories.trajectory import Trajectory

_WIDTH = 60  # characters, of a spark line


def trajectory_view(row: Trajectory) -> RenderableType:
    """Make the view of a trajectory."""
    texts = token_texts(row)
    is_apart = row.response is not None and row.tokens is None
    return stacked(
        Text(title_of(row), style="bold"),
        _section("prompt", _prompt(row)),
        _section("response", Text(visible(row.response or ""))) if is_apart else None,
        _section("tokens" if is_apart else "response", _shaded(row, texts), _legend(row))
        if texts is not None
        else None,
        _lines(row),
        _section("other fields", Text("\n".join(outline(row.metadata)))) if row.metadata else None,
    )


def title_of(row: Trajectory) -> str:
    """Write which trajectory it is."""
    parts = [f"step {row.step}" + ("" if row.phase == "train" else f" ({row.phase})")]
    parts.append(f"row {row.row}")
    if row.group is not None:
        output = f", output {row.output_index}" if row.output_index else ""
        parts.append(f"group {row.group}, session {row.session}{output}")
    if row.score is not None:
        parts.append(f"reward {readable_number(row.score)}")
    return " · ".join(parts)


def length_of(ids: Any) -> str:
    """Write how many tokens there are."""
    return "" if ids is None else f" ({len(ids)} tokens)"


def token_texts(row: Trajectory) -> list[str] | None:
    """Return what stands for each token of a response: its text, else its id and a space."""
    if row.tokens is not None:
        return row.tokens
    if row.response_ids is None:
        return None
    return [f"{token} " for token in row.response_ids.tolist()]


def per_token(row: Trajectory) -> Iterator[tuple[str, list[float]]]:
    """Give the figures that a trajectory has for each token, by name."""
    for name, values in (
        ("log-prob", row.log_probs),
        ("reward", row.rewards),
        ("mask", row.mask),
    ):
        if values is not None and len(values):
            yield name, values.tolist()


def _section(name: str, body: RenderableType, legend: Text | None = None) -> RenderableType:
    grid = Table.grid()
    grid.add_row(Text(name, style="bold cyan"))
    grid.add_row(Padding(body, (0, 0, 0, 2)))
    if legend is not None:
        grid.add_row(Padding(legend, (0, 0, 0, 2)))
    return grid


def _prompt(row: Trajectory) -> Text:
    if row.prompt_text is not None:
        return Text(visible(row.prompt_text))
    if row.prompt_ids is None:
        return Text("not recorded", style="dim")
    return Text(" ".join(map(str, row.prompt_ids.tolist())))


def _shaded(row: Trajectory, texts: list[str]) -> Text:
    return Text.assemble(*((visible(text), _style(row, place)) for place, text in enumerate(texts)))


def _style(row: Trajectory, place: int) -> str:
    """Return the style of a token: a shade for its log-prob, faint where the mask leaves it out."""
    if row.mask is not None and place < len(row.mask) and not row.mask[place]:
        return "dim italic"
    if row.log_probs is None or place >= len(row.log_probs):
        return ""
    return shading.TERMINAL[shading.shade(float(row.log_probs[place]))]


def _legend(row: Trajectory) -> Text | None:
    if row.log_probs is None:
        return None
    shades = zip(shading.LEGEND, shading.TERMINAL, strict=True)
    parts = [(f" {text} ", style) for text, style in shades if text]
    return Text.assemble(("probability ", "dim"), *parts)


def _lines(row: Trajectory) -> RenderableType | None:
    grid = Table.grid(padding=(0, 2))
    for name, values in per_token(row):
        ends = dict.fromkeys(map(readable_number, (min(values), max(values))))
        line = Text(sparkline(values, _WIDTH), style="cyan", no_wrap=True, overflow="crop")
        grid.add_row(Text(name, style="bold"), line, " to ".join(ends))
    return grid if grid.row_count else None
