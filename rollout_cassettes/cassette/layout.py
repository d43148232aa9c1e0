"""How the values of an interaction are read as trajectories: each adapter says it for its own.

Adapters stand above this layer, and enter what they know here, by the name that manifests have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollout_cassettes.trajectories import Trajectory, read

Layout = Callable[[Any, Any], list[Trajectory]]
"""Makes the trajectories of a request and a response: of plain containers and numpy arrays."""

_layouts: dict[str, Layout] = {}
_finders: list[Callable[[str], None]] = []


def register_layout(adapter: str, layout: Layout) -> None:
    """Say how the recordings of an adapter are read."""
    _layouts[adapter] = layout


def look_for_layouts(find: Callable[[str], None]) -> None:
    """Ask ``find`` for an adapter that is unknown: it may enter what it finds under that name."""
    _finders.append(find)


def layout_of(adapter: str) -> Layout:
    """Return how the recordings of an adapter are read; of one that is unknown, by their names."""
    return _layouts[adapter] if is_known(adapter) else read


def is_known(adapter: str) -> bool:
    """Tell whether an adapter has said how its recordings are read."""
    for find in _finders:
        if adapter not in _layouts:
            find(adapter)
    return adapter in _layouts
