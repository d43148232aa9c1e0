"""The adapters that a session uses when it names none, and the names that are taken."""

from __future__ import annotations

from rollout_cassettes.adapters.adapter import Adapter, Exchange
from rollout_cassettes.cassette.layout import register_layout

_adapters: dict[str, Adapter] = {}
_names: dict[str, frozenset[str]] = {}


def register(adapter: Adapter) -> None:
    """Make an adapter known; one of the same name and entry points takes the earlier one's place.

    Raises:
        ValueError: If its name is taken by an adapter with other entry points, or another adapter
            has one of its entry points, in the same role.
    """
    claims = {point.claim for point in adapter.entry_points} - {None}
    for other in _adapters.values():
        shared = [str(point) for point in other.entry_points if point.claim in claims]
        if shared and other.name != adapter.name:
            raise ValueError(f"the adapter {other.name!r} intercepts {sorted(shared)} already")
    claim(adapter.name, frozenset(point.target for point in adapter.entry_points))
    _adapters[adapter.name] = adapter
    register_layout(adapter.name, lambda *recorded: adapter.trajectories(Exchange(*recorded)))


def registered() -> dict[str, Adapter]:
    """Return the known adapters by name."""
    return dict(_adapters)


def claim(name: str, targets: frozenset[str]) -> None:
    """Let a name stand for these functions: recordings are told apart by their adapter's name.

    Raises:
        ValueError: If it stands for others already.
    """
    if _names.setdefault(name, targets) != targets:
        raise ValueError(
            f"the name {name!r} is taken by the adapter of {sorted(_names[name])}: give the "
            f"adapter of {sorted(targets)} another name="
        )
