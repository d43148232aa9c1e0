"""A progress bar for what takes long: on a terminal, and never in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def tracked(items: Sequence[Item], what: str, errors: Console) -> Iterable[Item]:
    """Go through items, and show how far it is; the bar goes when it is done.

    Args:
        items: What there is to do.
        what: What is being done: ``"Reading"``.
        errors: Where to; stderr, so that a pipe's reader never sees it.
    """
    return track(items, what, console=errors, transient=True, disable=not errors.is_terminal)
