"""Patches: the wrappers that are put around a function, and taken off again."""

from __future__ import annotations

import difflib
import importlib.metadata
import inspect
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from packaging.version import Version

from rollout_cassettes.errors import EntryPointNotFoundError
from rollout_cassettes.patching import subclasses
from rollout_cassettes.patching.attribute import Attribute
from rollout_cassettes.patching.call import EntryPoint, Role
from rollout_cassettes.patching.facade import around, inner_of
from rollout_cassettes.patching.imports import watcher
from rollout_cassettes.patching.wrapper import wrap

lock = threading.RLock()
"""Held while patches come and go."""


class Patch:
    """What is patched for one target, while sessions want it: now, or when it is imported.

    Adapters that intercept the same function share its patch, so that sessions are asked from the
    inside out whatever the order in which they were opened.

    Args:
        point: An entry point of the target.
    """

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self._module = point.module
        self._wanted: list[EntryPoint] = []
        self._attributes: list[Attribute] = []
        self._watched: list[type[Any]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is patched here: Ray sends actor classes with all that they inherit.

        Ray 2.60's ``ActorClass`` holds every method, the hook for later subclasses among them.
        """
        return Patch, (self._point,)

    def is_on(self) -> bool:
        """Tell whether the target is wrapped; it isn't before its module is imported."""
        return bool(self._attributes)

    def acquire(self, point: EntryPoint) -> None:
        """Want the target wrapped for one more entry point.

        Raises:
            EntryPointNotFoundError: If its module is imported and lacks it.
        """
        self._wanted.append(point)
        if len(self._wanted) == 1:
            watcher.watch(self._module, self._after_import)
        module = sys.modules.get(self._module)
        if module is not None:
            self._apply(module)

    def release(self, point: EntryPoint) -> bool:
        """Want it for one entry point less; undo it, and return True, if that was the last."""
        self._wanted.remove(point)
        if self._wanted:
            return False
        watcher.forget(self._module, self._after_import)
        while self._watched:
            subclasses.forget(self._watched.pop(), self._wrap_override)
        while self._attributes:
            self._attributes.pop().restore()
        return True

    def _after_import(self, module: ModuleType) -> None:
        with lock:
            # A reload executes a module over itself, and so overwrites the wrappers in it.
            self._attributes = [a for a in self._attributes if a.owner is not module or a.is_on()]
            self._apply(module)

    def _apply(self, module: ModuleType) -> None:
        if not self._wanted:
            return
        try:
            owner, name = _find(self._wanted[0], module)
        except EntryPointNotFoundError:
            if all(_may_be_missing(point) for point in self._wanted):
                return
            raise
        self._wrap(owner, name)
        if isinstance(owner, type) and any(point.overrides for point in self._wanted):
            self._wrap_overrides(owner, name)

    def _wrap(self, owner: Any, name: str) -> None:
        if any(each.owner is owner and each.name == name for each in self._attributes):
            return
        replacement = _replacement(self._wanted[0], owner, name)
        self._attributes.append(Attribute.replace(owner, name, replacement))

    def _wrap_overrides(self, owner: type[Any], name: str) -> None:
        """Wrap the method in the subclasses that there are, and in those still to be defined."""
        for cls in _subclasses(owner):
            if name in vars(cls):
                self._wrap(cls, name)
        if owner in self._watched:
            return
        subclasses.watch(owner, self._wrap_override)
        self._watched.append(owner)

    def _wrap_override(self, cls: type[Any]) -> None:
        with lock:
            if not self._wanted:
                return
            name = self._wanted[0].qualname.rpartition(".")[2]
            if name in vars(cls):
                self._wrap(cls, name)


def _replacement(point: EntryPoint, owner: Any, name: str) -> Any:
    """Return what is to stand in an attribute's place, of the kind of what stands there."""
    if not isinstance(owner, type):  # what a module or an object holds is not bound to anything
        return _wrapped(point, getattr(owner, name))
    static = inspect.getattr_static(owner, name)
    if isinstance(static, (staticmethod, classmethod)):
        return type(static)(_wrapped(point, static.__func__))
    if not hasattr(type(static), "__get__"):  # a callable that does not become a method
        return staticmethod(_wrapped(point, static))
    return _wrapped(point, getattr(owner, name))


def _wrapped(point: EntryPoint, function: Any) -> Any:
    """Return a function with a wrapper around it, or inside it where its caller matters to it."""
    inner = inner_of(function)
    return wrap(point, function) if inner is None else around(function, wrap(point, inner))


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _find(point: EntryPoint, module: ModuleType) -> tuple[Any, str]:
    """Return what holds the entry point, and the name that it has there.

    Raises:
        EntryPointNotFoundError: If it isn't there, or is no function.
    """
    parts = point.qualname.split(".")
    owner: Any = module
    for depth, part in enumerate(parts[:-1]):
        if not hasattr(owner, part):
            raise _not_found(point, owner, depth)
        owner = getattr(owner, part)
    found = getattr(owner, parts[-1], None)
    if not callable(found) or isinstance(found, type):
        raise _not_found(point, owner, len(parts) - 1)
    return owner, parts[-1]


def _not_found(point: EntryPoint, owner: Any, depth: int) -> EntryPointNotFoundError:
    """Return the error for an entry point that its module lacks.

    Args:
        point: The entry point.
        owner: What was found of it.
        depth: Which part of its qualified name ``owner`` lacks, or has no function for.
    """
    framework = point.framework or _distribution(point.module)
    version = _version(framework)
    release = f"{framework} {version}" if version else f"The module {point.module}"
    found = getattr(owner, point.qualname.split(".")[depth], None)
    why = "" if found is None else f": what it has there is a {type(found).__name__}"
    return EntryPointNotFoundError(
        f"{release} has no function {point}, which the adapter {point.adapter!r} intercepts{why}.",
        fixes=[*_close_names(point, owner, depth), *_remedies(point)],
        adapter=point.adapter,
        target=str(point),
        framework=framework,
        version=version,
    )


def _close_names(point: EntryPoint, owner: Any, depth: int) -> list[str]:
    parts = point.qualname.split(".")
    others = [name for name in dir(owner) if name != parts[depth]]
    close = difflib.get_close_matches(parts[depth], others, n=3)
    named = [f"{point.module}:{'.'.join([*parts[:depth], name])}" for name in close]
    return ["Did you mean " + " or ".join(named) + "?"] if named else []


def _remedies(point: EntryPoint) -> list[str]:
    if not point.framework:
        return [
            "Name a function or method as 'package.module:Qualified.name', where it is defined."
        ]
    release = (
        f"Install a release of {point.framework} that this version of rollout_cassettes knows, "
        "or upgrade rollout_cassettes."
    )
    by_name = (
        "Leave the adapter out, and name the function to intercept: "
        "adapters=[rollout_cassettes.adapters.function('package.module:Qualified.name')]."
    )
    return [release, by_name]


def _may_be_missing(point: EntryPoint) -> bool:
    """Tell whether nothing is lost with an entry point that its module lacks.

    What is not there can't be refused; and a release may be older than the function.
    """
    if point.role is Role.START:
        return True
    version = _version(point.framework) if point.since else None
    return version is not None and Version(version) < Version(point.since)


def _distribution(module: str) -> str:
    root = module.partition(".")[0]
    return next(iter(importlib.metadata.packages_distributions().get(root, ())), root)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
