"""Tables of steps and of trajectories, for terminals and for the text of notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rollout_cassettes.display.amounts import (
    readable_bytes,
    readable_count,
    readable_number,
    readable_seconds,
)
from rollout_cassettes.display.sparkline import sparkline
from rollout_cassettes.display.visible import visible
from rollout_cassettes.trajectories import Figures, Statistics, Trajectory


def table(*columns: str, left: Sequence[str] = (), flexible: Sequence[str] = ()) -> Table:
    """Make an empty table in the style of this library.

    Args:
        columns: The headings. Figures stand on the right, and are never broken.
        left: Those with text, which stands on the left.
        flexible: Those of them that give way where the terminal is narrow: cut, with an ellipsis.
    """
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    made.header_style = "bold"
    for name in columns:
        made.add_column(
            name,
            justify="left" if name in left or name in flexible else "right",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if name in flexible else None,
        )
    if flexible:
        made.expand = True
    return made


def steps_table(figures: Sequence[Figures]) -> Table:
    """Make the table of a cassette's interactions."""
    several = [
        name
        for name, usual in (("phase", "train"), ("index", 0), ("rank", 0))
        if any(getattr(each, name) != usual for each in figures)
    ]
    made = table(
        *("step", *several, "rows", "prompts", "tokens", "length", "reward", "±"),
        *("generation", "size"),
        left=["phase"],
    )
    for each in figures:
        made.add_row(
            str(each.step),
            *(str(getattr(each, name)) for name in several),
            *_cells(each.statistics),
            readable_seconds(each.seconds),
            readable_bytes(each.nbytes),
        )
    return made


def _cells(statistics: Statistics) -> tuple[str, ...]:
    return (
        readable_count(statistics.rows or None),
        readable_count(statistics.groups),
        readable_count(statistics.response_tokens),
        "" if statistics.response_length is None else f"{statistics.response_length:.1f}",
        readable_number(statistics.reward),
        readable_number(statistics.reward_std),
    )


def trends(figures: Iterable[Figures]) -> RenderableType | None:
    """Make the spark lines of rewards and response lengths over steps; None for a single step."""
    chosen = [each.statistics for each in figures if each.phase == "train"]
    lines = {
        "reward": [each.reward for each in chosen],
        "response length": [each.response_length for each in chosen],
    }
    made = Table.grid(padding=(0, 2))
    for name, values in lines.items():
        known = [value for value in values if value is not None]
        if len(known) > 1:
            made.add_row(
                Text(name, style="bold"),
                Text(sparkline(values, 40), style="cyan"),
                f"{readable_number(min(known))} to {readable_number(max(known))}",
            )
    return made if made.row_count else None


def rows_table(rows: Sequence[Trajectory]) -> Table:
    """Make the table of a batch's trajectories."""
    shown = {
        "group": [_count(row.group) for row in rows],
        "session": [_count(row.session) for row in rows],
        "tokens": [_count(row.response_length) for row in rows],
        "reward": [readable_number(row.score) for row in rows],
        "prompt": [excerpt(row.question) for row in rows],
        "response": [excerpt(response_of(row)) for row in rows],
    }
    columns = {name: cells for name, cells in shown.items() if any(cells)}
    made = table("row", *columns, flexible=["prompt", "response"])
    for row, *cells in zip(rows, *columns.values(), strict=True):
        made.add_row(str(row.row), *map(Text, cells))
    return made


def response_of(row: Trajectory) -> str:
    """Return a response as text; as token ids where the recording holds no text."""
    if row.response is not None:
        return row.response
    return "" if row.response_ids is None else " ".join(map(str, row.response_ids.tolist()))


def excerpt(text: str | None, width: int = 200) -> str:
    """Return the beginning of a text in one line."""
    return "" if text is None else visible(" ".join(text[: 2 * width].split())[:width])


def stacked(*parts: RenderableType | None) -> Group:
    """Put parts below each other, with a line between them; what is None is left out."""
    pieces = [piece for part in parts if part is not None for piece in (Text(), part)]
    return Group(*pieces[1:])


def _count(value: int | None) -> str:
    return "" if value is None else str(value)
