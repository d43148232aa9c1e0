"""Wrappers: each lets the open sessions answer a call, and else is the original.

A session answers with a generator, which yields where it wants the live call made, gets its
result, and returns what the caller is to have. It yields True if the call is one of its own: the
calls made inside it are then part of it, and are not brought before the session again. So one
session serves synchronous and asynchronous entry points, and sessions nest: "the live call" of an
inner one is whatever the next outer one answers.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rollout_cassettes.patching.call import Call, EntryPoint, Role

if TYPE_CHECKING:
    from typing_extensions import Self

Answer = Generator[bool, Any, Any]


class Handler(Protocol):
    """What answers calls: a session."""

    def handle(self, call: Call) -> Answer:
        """Answer a call; yield at most once, where the live call is wanted.

        What is yielded tells whether the call is one of the session's own.
        """

    def pass_over(self, call: Call) -> None:
        """Take note of a call that an inner session answered by itself."""


class Awaited(NamedTuple):
    """Stands for a coroutine that a function returned which is no ``async def`` itself.

    Attributes:
        value: What awaiting it gave.
    """

    value: Any


@dataclass
class _Frame:
    """A call that is being answered, as the calls made inside it see it.

    Attributes:
        point: The function.
        marked_by: The adapter that wrapped it for good; None where a session did.
        asked: The sessions that were asked about the call.
        owners: Those of them that take the calls inside it for parts of it.
        is_open: Whether it is still being answered.
    """

    point: EntryPoint
    marked_by: Any
    asked: tuple[Handler, ...]
    owners: list[Handler] = field(default_factory=list)
    is_open: bool = True


_lock = threading.Lock()
_handlers: tuple[Handler, ...] = ()
_frames: ContextVar[tuple[_Frame, ...]] = ContextVar("rollout_cassettes_frames", default=())


def push(handler: Handler) -> None:
    """Ask a session first, from now on."""
    global _handlers  # noqa: PLW0603 - what is open is a fact about the process
    with _lock:
        _handlers = (handler, *_handlers)


def remove(handler: Handler) -> None:
    """Ask a session no more, whether or not it is the innermost."""
    global _handlers  # noqa: PLW0603
    with _lock:
        _handlers = tuple(other for other in _handlers if other is not handler)


def is_taken() -> bool:
    """Tell the session that is being asked whether one before it took the call for its own."""
    frames = _frames.get()
    return bool(frames and frames[-1].owners)


def wrap(
    point: EntryPoint, original: Callable[..., Any], *, marked_by: Any = None
) -> Callable[..., Any]:
    """Return a function that lets the open sessions answer, and else is the original.

    Args:
        point: The entry point that the original is.
        original: A function, synchronous or not.
        marked_by: The adapter, where the function is wrapped for good.
    """
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            handlers = _handlers_for(point, marked_by)
            if not handlers:
                return await original(*args, **kwargs)
            with _Conversation(Call(point, original, args, kwargs, marked_by), handlers) as talk:
                if talk.wants_live():
                    talk.tell(await original(*args, **kwargs))
                return talk.result.value if isinstance(talk.result, Awaited) else talk.result

    else:

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            handlers = _handlers_for(point, marked_by)
            if not handlers:
                return original(*args, **kwargs)
            with _Conversation(Call(point, original, args, kwargs, marked_by), handlers) as talk:
                if talk.wants_live():
                    live = original(*args, **kwargs)
                    if inspect.iscoroutine(live):
                        return _continue(talk.set_aside(), live)
                    talk.tell(live)
                return _given(talk.result) if isinstance(talk.result, Awaited) else talk.result

    return wrapper


def _handlers_for(point: EntryPoint, marked_by: Any) -> tuple[Handler, ...]:
    """Return the sessions to ask, innermost first.

    A session is not asked about a call that is part of one which it is answering: of the same
    function (an override that calls ``super()``, a router that hands on to its replicas), or of
    another, if it says so. A replay hands back the whole, and does not come to make the parts.
    What is submitted while sampling, or while waiting to, is no part of that: it may be sampled
    later. A marked function that a session wraps too has two wrappers, and each is for other sessions.
    """
    busy: list[Handler] = []
    for frame in _frames.get():
        if not frame.is_open:
            continue
        if frame.point.target == point.target and (frame.marked_by is None) == (marked_by is None):
            busy += frame.asked
        elif point.role is not Role.SUBMIT or frame.point.role not in (Role.SAMPLE, Role.POLL):
            busy += frame.owners
    return tuple(each for each in _handlers if each not in busy) if busy else _handlers


class _Conversation:
    """One call, talked over with the sessions.

    Attributes:
        result: What the caller is to have, once that is known.
    """

    def __init__(self, call: Call, handlers: tuple[Handler, ...]) -> None:
        self.result: Any = None
        self._call = call
        self._handlers = handlers
        self._waiting: list[Answer] = []
        self._frame = _Frame(call.point, call.marked_by, handlers)
        self._token: Token[tuple[_Frame, ...]] | None = None

    def __enter__(self) -> Self:
        self._token = _frames.set((*_frames.get(), self._frame))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A task started inside the call keeps the frame in its context: closing it is what counts.
        self._frame.is_open = False
        assert self._token is not None  # noqa: S101 - it was entered
        with suppress(ValueError):  # a coroutine may be closed in another context than its own
            _frames.reset(self._token)
        while self._waiting:
            self._waiting.pop().close()

    def wants_live(self) -> bool:
        """Ask the sessions in turn, and return whether all of them want the live call made."""
        for number, handler in enumerate(self._handlers):
            answer = handler.handle(self._call)
            try:
                if next(answer):
                    self._frame.owners.append(handler)
            except StopIteration as done:
                for outer in self._handlers[number + 1 :]:
                    outer.pass_over(self._call)
                self.tell(done.value)
                return False
            self._waiting.append(answer)
        return True

    def tell(self, result: Any) -> None:
        """Give a result to the sessions that wait for one, the outermost first."""
        while self._waiting:
            result = _finish(self._waiting.pop(), result)
        self.result = result

    def set_aside(self) -> _Conversation:
        """Return the conversation as one to be entered again, when the result is there."""
        later = _Conversation(self._call, self._handlers)
        later._waiting, self._waiting = self._waiting, []
        later._frame.owners = self._frame.owners
        return later


def _finish(answer: Answer, live: Any) -> Any:
    """Give a session the live call's result, and return its answer."""
    try:
        answer.send(live)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a session asked for the live call twice")


async def _continue(talk: _Conversation, live: Coroutine[Any, Any, Any]) -> Any:
    """Await a live call that returned a coroutine, and tell the sessions what it gave."""
    with talk:
        talk.tell(Awaited(await live))
        return talk.result.value if isinstance(talk.result, Awaited) else talk.result


async def _given(awaited: Awaited) -> Any:
    return awaited.value
