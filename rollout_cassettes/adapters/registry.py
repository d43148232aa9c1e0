"""The adapters that are known: those registered in code, and those that other distributions offer."""

from __future__ import annotations

import difflib
import logging
import threading
from collections.abc import Sequence
from importlib.metadata import EntryPoint

from rollout_cassettes.adapters import discovery
from rollout_cassettes.adapters.adapter import Adapter, Exchange
from rollout_cassettes.cassette.layout import look_for_layouts, register_layout
from rollout_cassettes.errors import AdapterLoadError

logger = logging.getLogger("rollout_cassettes")

_adapters: dict[str, Adapter] = {}
_names: dict[str, frozenset[str]] = {}
_found: set[str] = set()
_unreadable: set[str] = set()
_lock = threading.RLock()
"""Held while adapters of other distributions are loaded, whose modules may register some too."""


def register(adapter: Adapter) -> None:
    """Make an adapter known; one of the same name and entry points takes the earlier one's place.

    Raises:
        ValueError: If its name is taken by an adapter with other entry points, or another adapter
            has one of its entry points, in the same role, and sessions would use both by default.
    """
    claims = {point.claim for point in adapter.entry_points} - {None}
    for other in _adapters.values():
        shared = [str(point) for point in other.entry_points if point.claim in claims]
        both = adapter.by_default and other.by_default
        if shared and both and other.name != adapter.name:
            raise ValueError(f"the adapter {other.name!r} intercepts {sorted(shared)} already")
    claim(adapter.name, frozenset(point.target for point in adapter.entry_points))
    _adapters[adapter.name] = adapter
    register_layout(adapter.name, lambda *recorded: adapter.trajectories(Exchange(*recorded)))


def registered() -> dict[str, Adapter]:
    """Return the known adapters by name, those of other distributions included.

    Raises:
        AdapterLoadError: If a distribution offers one that can't be used.
    """
    for name in discovery.offers():
        _find(name)
    return dict(_adapters)


def named(name: str) -> Adapter:
    """Return the adapter of a name; of other distributions none but this one is imported.

    Raises:
        ValueError: If no adapter has that name.
        AdapterLoadError: If a distribution offers one that can't be used.
    """
    _find(name)
    if name in _adapters:
        return _adapters[name]
    known = sorted({*_adapters, *discovery.offers()})
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"no adapter is named {name!r}{hint}: there are {', '.join(known)}")


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


def _find(name: str) -> None:
    """Register what a distribution offers under a name; what code has registered stays.

    Raises:
        AdapterLoadError: If it can't be used.
    """
    with _lock:
        offered = discovery.offers().get(name)
        if offered is None or name in _found:
            return
        _found.add(name)  # its module may ask for what is registered
        try:
            _enter(offered)
        except BaseException:  # also one who interrupts: the next session looks again
            _found.discard(name)
            raise


def _enter(offered: Sequence[EntryPoint]) -> None:
    """Load what is offered under a name, and register it."""
    adapter = discovery.load(offered)
    known = _adapters.get(adapter.name)
    if known is None:
        try:
            register(adapter)
        except ValueError as error:
            raise discovery.broken(offered[0], f"but {error}") from error
    elif type(known) is not type(adapter):
        ignored = discovery.broken(offered[0], "and one of that name is registered already")
        logger.warning("%s That one is used.", ignored.what)


def _find_layout(name: str) -> None:
    """Let a distribution say how its adapter's recordings are read; looking never fails for it."""
    try:
        _find(name)
    except AdapterLoadError as error:
        if name not in _unreadable:
            _unreadable.add(name)
            logger.warning("%s Its recordings are read by the names of their columns.", error.what)


look_for_layouts(_find_layout)
