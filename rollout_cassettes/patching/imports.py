"""Watching imports: a framework may be imported after a with-block opened."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any, cast

Then = Callable[[ModuleType], None]


class ImportWatcher(MetaPathFinder):
    """Calls back each time that a watched module has been executed; finds no modules itself.

    It is on ``sys.meta_path`` only while a module is watched.
    """

    def __init__(self) -> None:
        self._watched: dict[str, list[Then]] = {}

    def watch(self, module: str, then: Then) -> None:
        """Call ``then(module)`` when a module was imported or reloaded, before its importer goes on."""
        self._watched.setdefault(module, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def forget(self, module: str, then: Then) -> None:
        """Undo :meth:`watch`."""
        self._watched[module].remove(then)
        if not self._watched[module]:
            del self._watched[module]
        if not self._watched and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return what another finder finds, with a loader that calls back; None for the rest."""
        if fullname not in self._watched:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):  # old ones are Python's to ask
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = cast("Loader", _TellingLoader(spec.loader, self._tell))
                return spec
        return None

    def _tell(self, module: ModuleType) -> None:
        for then in list(self._watched.get(module.__name__, ())):
            then(module)


watcher = ImportWatcher()
"""The only one: two that watch a module would ask each other for it, for ever."""


def once_imported(module: str, then: Then) -> None:
    """Call ``then(module)`` once: after its import, before its importer goes on; now if it was."""
    if module in sys.modules:
        then(sys.modules[module])
        return

    def tell(imported: ModuleType) -> None:
        then(imported)
        watcher.forget(module, tell)  # not before: an import that fails here may be tried again

    watcher.watch(module, tell)


class _TellingLoader:
    """A loader that tells when it has executed its module; in all else, the loader it stands for."""

    def __init__(self, loader: Loader, tell: Then) -> None:
        self._loader = loader
        self._tell = tell

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # the module is to look as it would without us
        self._loader.exec_module(module)
        self._tell(sys.modules.get(name, module))  # a module may put another in its place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
