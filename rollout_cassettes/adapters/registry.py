"""The adapters that a session uses when it names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollout_cassettes.adapters.adapter import Adapter
    from rollout_cassettes.patching import EntryPoint

_adapters: dict[str, Adapter] = {}
_marked: dict[EntryPoint, Adapter] = {}


def register(adapter: Adapter, *marked: EntryPoint) -> None:
    """Make an adapter known.

    Args:
        adapter: The adapter.
        marked: Entry points of it that need no patching, since a decorator wrapped them for good.
    """
    _adapters[adapter.name] = adapter
    _marked.update(dict.fromkeys(marked, adapter))


def registered() -> dict[str, Adapter]:
    """Return the known adapters by name."""
    return dict(_adapters)


def marked(point: EntryPoint) -> Adapter | None:
    """Return the adapter of an entry point that a decorator wrapped; None if none did."""
    return _marked.get(point)
