"""Watching classes for subclasses that are defined while a session is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollout_cassettes.patching.attribute import Attribute

Then = Callable[[type[Any]], None]

_HOOK = "__init_subclass__"

_watched: dict[type[Any], tuple[Attribute, list[Then]]] = {}


def watch(owner: type[Any], then: Then) -> None:
    """Call ``then(cls)`` when a class was derived from another, however far down."""
    if owner not in _watched:
        calls: list[Then] = []
        _watched[owner] = (Attribute.replace(owner, _HOOK, _hook(owner, calls)), calls)
    _watched[owner][1].append(then)


def forget(owner: type[Any], then: Then) -> None:
    """Undo :func:`watch`."""
    attribute, calls = _watched[owner]
    calls.remove(then)
    if not calls:
        del _watched[owner]
        attribute.restore()


def _hook(owner: type[Any], calls: list[Then]) -> Any:
    inherited = vars(owner).get(_HOOK)

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        if inherited is None:
            super(owner, cls).__init_subclass__(**kwargs)
        else:
            inherited.__get__(None, cls)(**kwargs)
        for then in list(calls):
            then(cls)

    return classmethod(init_subclass)
