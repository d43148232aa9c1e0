"""A table of text, for terminals and for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table
from rich.text import Text

from rollout_cassettes.display.html import element, escaped

_LINE = "1px solid rgba(128,128,128,0.5)"

_CUT = "text-align:left;max-width:24em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


@dataclass(frozen=True)
class Sheet:
    """Headings and rows.

    Attributes:
        columns: The headings. Figures stand on the right, and are never broken.
        rows: The cells of each row.
        left: The columns with text, which stands on the left.
        flexible: Those of them that give way where there is little room: cut, with an ellipsis.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Collection[str] = field(default=())
    flexible: Collection[str] = field(default=())

    def rich(self) -> Table:
        """Make the table that a terminal shows."""
        made = table(*self.columns, left=self.left, flexible=self.flexible)
        for row in self.rows:
            made.add_row(*map(Text, row))
        return made

    def html(self) -> str:
        """Make the table that a notebook shows."""
        styles = [f"padding:2px 8px;{self._style(name)}" for name in self.columns]
        line = f"border-bottom:{_LINE};"
        head = [
            element("th", escaped(name), line + style)
            for name, style in zip(self.columns, styles, strict=True)
        ]
        rows = [
            "".join(
                element("td", escaped(cell), style) for cell, style in zip(row, styles, strict=True)
            )
            for row in self.rows
        ]
        body = "".join(element("tr", cells) for cells in ("".join(head), *rows))
        style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:6px 0"
        return element("table", body, style)

    def _style(self, name: str) -> str:
        if name in self.flexible:
            return _CUT
        return "text-align:left" if name in self.left else "text-align:right"


def table(*columns: str, left: Collection[str] = (), flexible: Collection[str] = ()) -> Table:
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
    made.expand = bool(flexible)
    return made
