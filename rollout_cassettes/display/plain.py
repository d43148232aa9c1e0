"""What a terminal would show, as plain text: for notebooks and logs."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

_WIDTH = 100  # characters


def as_text(part: RenderableType) -> str:
    """Return what is shown, without colours."""
    written = io.StringIO()
    console = Console(
        file=written,
        width=_WIDTH,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,  # in a notebook rich would show what it prints, the file left empty
    )
    console.print(part, highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines())
