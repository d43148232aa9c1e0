"""Puts wrappers around entry points while a session is active, and takes them off again.

This module holds the only global state of the library: the active sessions, innermost first, and
the patches that are on. A wrapper is thin. It asks the sessions, each of which answers with a
generator: the generator yields where it wants the live call made, gets its result, and returns
what the caller is to have. So one session serves synchronous and asynchronous entry points, and
sessions nest: "the live call" of an inner one is whatever the next outer one answers.
"""

from __future__ import annotations

import enum
import functools
import importlib.machinery
import importlib.metadata
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any, Protocol

from rollout_cassettes.errors import EntryPointNotFoundError

logger = logging.getLogger(__name__)

Answer = Generator[None, Any, Any]


class Half(enum.Enum):
    """Which part of an interaction passes through an entry point."""

    WHOLE = "whole"
    SUBMIT = "submit"
    SAMPLE = "sample"


@dataclass(frozen=True)
class EntryPoint:
    """A framework's function through which rollouts are asked for or handed over.

    Attributes:
        adapter: The name of the adapter that knows it.
        module: The module that holds it.
        qualname: Its qualified name in the module, such as ``"ReplayBuffer.sample"``.
        framework: The distribution it belongs to, for messages; empty where it is the user's own.
        half: Which part of an interaction passes through it.
        overrides: Whether methods of subclasses that override it are entry points too.
    """

    adapter: str
    module: str
    qualname: str
    framework: str = ""
    half: Half = Half.WHOLE
    overrides: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


@dataclass(frozen=True)
class Call:
    """One call of an entry point, before it is made."""

    point: EntryPoint
    original: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """The call's arguments by the names of the parameters, defaults included."""
        bound = inspect.signature(self.original).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)


class Handler(Protocol):
    """What answers calls: a session."""

    def handle(self, call: Call) -> Answer:
        """Answer a call; yield at most once, where the live call is wanted."""


_lock = threading.RLock()
_handlers: tuple[Handler, ...] = ()
_patches: dict[EntryPoint, _PatchedPoint] = {}
_inside: ContextVar[frozenset[tuple[EntryPoint, int]]] = ContextVar("inside", default=frozenset())


def activate(handler: Handler, points: Iterable[EntryPoint]) -> None:
    """Let a session answer calls of entry points, from now on and before all other sessions.

    Entry points of a module that is not imported yet are patched when it is.

    Raises:
        EntryPointNotFoundError: If an imported module lacks an entry point; nothing is patched then.
    """
    global _handlers  # noqa: PLW0603
    with _lock:
        used: list[EntryPoint] = []
        try:
            for point in points:
                used.append(point)
                _patches.setdefault(point, _PatchedPoint(point)).acquire()
        except BaseException:
            _release(used)
            raise
        _handlers = (handler, *_handlers)


def deactivate(handler: Handler, points: Iterable[EntryPoint]) -> None:
    """Undo :func:`activate`; patches go when the last session that wants them does."""
    global _handlers  # noqa: PLW0603
    with _lock:
        _handlers = tuple(other for other in _handlers if other is not handler)
        _release(points)


def _release(points: Iterable[EntryPoint]) -> None:
    for point in points:
        if _patches[point].release():
            del _patches[point]


def wrap(
    point: EntryPoint,
    original: Callable[..., Any],
    *,
    is_live: Callable[[], bool] = lambda: True,
) -> Callable[..., Any]:
    """Return a function that lets the active sessions answer, and else is the original.

    Args:
        point: The entry point that the original is.
        original: A function, synchronous or not.
        is_live: Tells whether the wrapper is still to be asked: another library may have kept it.
    """
    bound = "." in point.qualname  # the first argument is the object whose method it is

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            mark = (point, id(args[0]) if bound and args else 0)
            if not _handlers or mark in _inside.get() or not is_live():
                return await original(*args, **kwargs)
            with _entered(mark):
                return await _answer_async(Call(point, original, args, kwargs), _handlers)

    else:

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            mark = (point, id(args[0]) if bound and args else 0)
            if not _handlers or mark in _inside.get() or not is_live():
                return original(*args, **kwargs)
            with _entered(mark):
                return _answer(Call(point, original, args, kwargs), _handlers)

    return wrapper


@contextmanager
def _entered(mark: tuple[EntryPoint, int]) -> Iterator[None]:
    """Mark a call as being answered, so that a ``super()`` call inside it is not answered again."""
    token = _inside.set(_inside.get() | {mark})
    try:
        yield
    finally:
        _inside.reset(token)


def _answer(call: Call, handlers: Sequence[Handler]) -> Any:
    if not handlers:
        return call.original(*call.args, **call.kwargs)
    answer = handlers[0].handle(call)
    wanted, value = _start(answer)
    if not wanted:
        return value
    try:
        live = _answer(call, handlers[1:])
    except BaseException:
        answer.close()
        raise
    return _finish(answer, live)


async def _answer_async(call: Call, handlers: Sequence[Handler]) -> Any:
    if not handlers:
        return await call.original(*call.args, **call.kwargs)
    answer = handlers[0].handle(call)
    wanted, value = _start(answer)
    if not wanted:
        return value
    try:
        live = await _answer_async(call, handlers[1:])
    except BaseException:
        answer.close()
        raise
    return _finish(answer, live)


def _start(answer: Answer) -> tuple[bool, Any]:
    """Return whether a session wants the live call made, and its answer if it doesn't."""
    try:
        next(answer)
    except StopIteration as done:
        return False, done.value
    return True, None


def _finish(answer: Answer, live: Any) -> Any:
    """Give a session the live call's result, and return its answer."""
    try:
        answer.send(live)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a session asked for the live call twice")


@dataclass
class _Attribute:
    """One attribute that was replaced, and what is needed to put it back."""

    owner: Any
    name: str
    replacement: Any
    had: bool
    before: Any

    @classmethod
    def replace(cls, owner: Any, name: str, replacement: Any) -> _Attribute:
        had = name in vars(owner)
        before = vars(owner).get(name)
        setattr(owner, name, replacement)
        return cls(owner, name, replacement, had, before)

    def restore(self) -> None:
        if vars(self.owner).get(self.name) is not self.replacement:
            logger.warning(
                "%s.%s was patched by another library in the meantime; its patch is left on, and "
                "calls pass through it to the original",
                self.owner.__name__,
                self.name,
            )
        elif self.had:
            setattr(self.owner, self.name, self.before)
        else:
            delattr(self.owner, self.name)


@dataclass
class _PatchedPoint:
    """An entry point that sessions want patched: now, or when its module is imported."""

    point: EntryPoint
    users: int = 0
    attributes: list[_Attribute] = field(default_factory=list)

    def acquire(self) -> None:
        self.users += 1
        if self.users > 1:
            return
        module = sys.modules.get(self.point.module)
        if module is None:
            _watcher.watch(self.point.module, self._patch)
        else:
            self._patch(module)

    def release(self) -> bool:
        """Give up one use; take the patch off, and return True, if it was the last."""
        self.users -= 1
        if self.users > 0:
            return False
        _watcher.forget(self.point.module, self._patch)
        while self.attributes:
            self.attributes.pop().restore()
        return True

    def _patch(self, module: ModuleType) -> None:
        *path, name = self.point.qualname.split(".")
        owner: Any = module
        for part in path:
            owner = getattr(owner, part, None)
        if not callable(getattr(owner, name, None)):
            raise _not_found(self.point)
        self._wrap_attribute(owner, name)
        if self.point.overrides:
            self._wrap_overrides(owner, name)

    def _wrap_attribute(self, owner: Any, name: str) -> None:
        static = inspect.getattr_static(owner, name)
        kind = type(static) if isinstance(static, (staticmethod, classmethod)) else None
        function = static.__func__ if kind else getattr(owner, name)
        wrapper = wrap(self.point, function, is_live=lambda: self.users > 0)
        replacement = kind(wrapper) if kind else wrapper
        self.attributes.append(_Attribute.replace(owner, name, replacement))

    def _wrap_overrides(self, owner: type[Any], name: str) -> None:
        """Wrap the method in the subclasses that there are, and in those still to be defined."""
        for cls in _subclasses(owner):
            if name in vars(cls):
                self._wrap_attribute(cls, name)
        inherited = vars(owner).get("__init_subclass__")

        def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
            if inherited is None:
                super(owner, cls).__init_subclass__(**kwargs)
            else:
                inherited.__get__(None, cls)(**kwargs)
            if self.users > 0 and name in vars(cls):
                self._wrap_attribute(cls, name)

        hook: classmethod[Any, Any, None] = classmethod(init_subclass)
        self.attributes.append(_Attribute.replace(owner, "__init_subclass__", hook))


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _not_found(point: EntryPoint) -> EntryPointNotFoundError:
    version = None
    with suppress(importlib.metadata.PackageNotFoundError, ValueError):
        version = importlib.metadata.version(point.framework)
    release = f"{point.framework} {version}" if version else point.module.partition(".")[0]
    return EntryPointNotFoundError(
        f"{release} has no {point}, which the adapter {point.adapter!r} intercepts.",
        fixes=[
            (
                "Upgrade rollout_cassettes, or install a release of the framework that it knows "
                "(docs/adapters.md lists them)."
            ),
            "Name the function yourself: adapters=[rollout_cassettes.adapters.function(...)].",
        ],
        adapter=point.adapter,
        target=str(point),
        framework=point.framework,
        version=version,
    )


class _ImportWatcher(MetaPathFinder):
    """Calls back right after a module has been imported; on ``sys.meta_path`` only while needed."""

    def __init__(self) -> None:
        self._wanted: dict[str, list[Callable[[ModuleType], None]]] = {}

    def watch(self, module: str, then: Callable[[ModuleType], None]) -> None:
        self._wanted.setdefault(module, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def forget(self, module: str, then: Callable[[ModuleType], None]) -> None:
        waiting = self._wanted.get(module, [])
        if then in waiting:
            waiting.remove(then)
        if not waiting:
            self._wanted.pop(module, None)
        if not self._wanted and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._wanted:
            return None
        spec = self._spec_of_others(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with suppress(AttributeError):
                del loader.exec_module
            execute(module)
            with _lock:
                for then in self._wanted.pop(fullname, []):
                    then(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _spec_of_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


_watcher = _ImportWatcher()
