"""Tables of steps and of trajectories, for terminals and for the text of notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rollout_cassettes.display.amounts import (
    readable_bytes,
    readable_count,
    readable_number,
    readable_seconds,
)
from rollout_cassettes.display.sheet import Sheet
from rollout_cassettes.display.sparkline import sparkline
from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories.figures import Figures
from rollout_cassettes.trajectories.statistics import Statistics
from rollout_cassettes.trajectories.trajectory import Trajectory

_TREND_WIDTH, _EXCERPT = 40, 200  # characters


def steps_sheet(figures: Sequence[Figures]) -> Sheet:
    """Make the table of a cassette's interactions; columns that are empty are left out."""
    several = [
        name
        for name, usual in (("phase", "train"), ("index", 0), ("rank", 0))
        if any(getattr(each, name) != usual for each in figures)
    ]
    headings = ("rows", "groups", "tokens", "length", "reward", "±", "generation", "size")
    rows = [
        [
            str(each.step),
            *(str(getattr(each, name)) for name in several),
            *_cells(each.statistics),
            readable_seconds(each.seconds),
            readable_bytes(each.nbytes),
        ]
        for each in figures
    ]
    columns = ["step", *several, *headings]
    filled = [place for place in range(len(columns)) if not rows or any(row[place] for row in rows)]
    return Sheet(
        [columns[place] for place in filled],
        [[row[place] for place in filled] for row in rows],
        left=["phase"],
    )


def _cells(statistics: Statistics) -> tuple[str, ...]:
    return (
        readable_count(statistics.rows or None),
        readable_count(statistics.groups),
        readable_count(statistics.response_tokens),
        "" if statistics.response_length is None else f"{statistics.response_length:.1f}",
        readable_number(statistics.reward),
        readable_number(statistics.reward_std),
    )


class Trend(NamedTuple):
    """How a figure goes over steps.

    Attributes:
        name: The figure's.
        line: A spark line.
        ends: The smallest and the largest of them.
    """

    name: str
    line: str
    ends: str


def trends(figures: Iterable[Figures]) -> Iterator[Trend]:
    """Give the trends of rewards and response lengths over training; none for a single step."""
    chosen = [each.statistics for each in figures if each.phase == "train"]
    for name, values in {
        "reward": [each.reward for each in chosen],
        "response length": [each.response_length for each in chosen],
    }.items():
        known = [value for value in values if value is not None]
        if len(known) > 1:
            ends = f"{readable_number(min(known))} to {readable_number(max(known))}"
            yield Trend(name, sparkline(values, _TREND_WIDTH), ends)


def trends_table(figures: Iterable[Figures]) -> RenderableType | None:
    """Make the spark lines of rewards and response lengths; None where there are none."""
    made = Table.grid(padding=(0, 2))
    for trend in trends(figures):
        made.add_row(Text(trend.name, style="bold"), Text(trend.line, style="cyan"), trend.ends)
    return made if made.row_count else None


def rows_sheet(rows: Sequence[Trajectory]) -> Sheet:
    """Make the table of a batch's trajectories."""
    has_outputs = any(row.output_index for row in rows)
    shown = {
        "group": [_count(row.group) for row in rows],
        "session": [_count(row.session) for row in rows],
        "output": [_count(row.output_index) if has_outputs else "" for row in rows],
        "tokens": [_count(row.response_length) for row in rows],
        "reward": [readable_number(row.score) for row in rows],
        "prompt": [_excerpt(row.question) for row in rows],
        "response": [_excerpt(_answer(row)) for row in rows],
    }
    columns = {name: cells for name, cells in shown.items() if any(cells)}
    numbers = [str(row.row) for row in rows]
    cells = list(zip(numbers, *columns.values(), strict=True))
    return Sheet(["row", *columns], cells, flexible=["prompt", "response"])


def _answer(row: Trajectory) -> str:
    """Return how a response begins: as text, or as token ids where no text is known."""
    if row.response is not None:
        return row.response
    if row.response_ids is None:
        return ""
    return " ".join(map(str, row.response_ids[:_EXCERPT].tolist()))


def _excerpt(text: str | None) -> str:
    """Return the beginning of a text in one line."""
    return "" if text is None else visible(" ".join(text[: 2 * _EXCERPT].split())[:_EXCERPT])


def stacked(*parts: RenderableType | None) -> Group:
    """Put parts below each other, with a line between them; what is None is left out."""
    pieces = [piece for part in parts if part is not None for piece in (Text(), part)]
    return Group(*pieces[1:])


def _count(value: int | None) -> str:
    return "" if value is None else str(value)
