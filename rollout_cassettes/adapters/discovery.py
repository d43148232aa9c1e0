"""The adapters of other distributions, found by the entry-point group that they name them in.

What is installed is read from its metadata, once for a process. A module of another distribution is
imported only when its adapter is wanted: by a session, or by someone who looks at what it recorded.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from rollout_cassettes.adapters.adapter import Adapter
from rollout_cassettes.errors import AdapterLoadError, shorten

GROUP = "rollout_cassettes.adapters"
"""Holds lines such as ``little = "little_adapter:LittleAdapter"``."""

_PARTS = ("name", "step_kind", "entry_points")
"""What an adapter's class has to say, and its base doesn't."""


@functools.cache
def offers() -> Mapping[str, Sequence[EntryPoint]]:
    """Return what the installed distributions offer, by the adapter's name."""
    found: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for each in entry_points(group=GROUP):
        found[each.name].append(each)
    return dict(found)


def load(offered: Sequence[EntryPoint]) -> Adapter:
    """Return the adapter that is offered under a name: an instance, or made by a class or function.

    Raises:
        AdapterLoadError: If it can't be imported or made, is no adapter of that name, or several
            distributions offer one.
    """
    offer, *others = offered
    if others:
        raise broken(offer, f"and so {'do' if others[1:] else 'does'} {_named(others)}")
    try:
        found = offer.load()
        adapter = found if isinstance(found, Adapter) else found()
    except (Exception, SystemExit) as error:  # a script, which exits where it is imported
        raise broken(offer, f"which can't be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(adapter, Adapter):
        raise broken(offer, f"which is no adapter: {shorten(adapter)}")
    missing = [part for part in _PARTS if not hasattr(adapter, part)]
    if missing:
        raise broken(offer, f"which has no {' and no '.join(missing)}")
    if adapter.name != offer.name:
        raise broken(offer, f"whose own name is {adapter.name!r}: both have to be the same")
    if not adapter.entry_points:
        raise broken(offer, "which intercepts nothing")
    return adapter


def broken(offer: EntryPoint, why: str) -> AdapterLoadError:
    """Return the error for an adapter that can't be used."""
    distribution = _distribution(offer)
    return AdapterLoadError(
        f"{distribution} offers the adapter {offer.name!r} at {offer.value}, {why}.",
        fixes=[
            f"Upgrade, mend or uninstall {distribution.partition(' ')[0]}.",
            "Name the adapters that a session is to use: adapters='verl_v1', for one.",
        ],
        adapter=offer.name,
        target=offer.value,
        distribution=distribution,
    )


def _distribution(offer: EntryPoint) -> str:
    return "A distribution" if offer.dist is None else f"{offer.dist.name} {offer.dist.version}"


def _named(offered: Sequence[EntryPoint]) -> str:
    return " and ".join(f"{_distribution(each)} at {each.value}" for each in offered)
