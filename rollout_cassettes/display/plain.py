"""What a terminal would show, as plain text: for notebooks and logs."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

_WIDTH = 100  # characters


def as_text(part: RenderableType) -> str:
    """Return what is shown, without colours."""
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(part, highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())
