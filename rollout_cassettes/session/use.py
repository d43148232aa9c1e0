"""Record once, replay from then on."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rollout_cassettes.cassette import Cassette
from rollout_cassettes.cassette.device import device_named
from rollout_cassettes.session import options
from rollout_cassettes.session.draft import Draft
from rollout_cassettes.session.player import Player
from rollout_cassettes.session.recorder import Recorder
from rollout_cassettes.session.session import Session
from rollout_cassettes.session.steps import Steps, StepsArgument

if TYPE_CHECKING:
    import torch

F = TypeVar("F", bound=Callable[..., Any])


class use_cassette:  # noqa: N801 - used like a function
    """Record a cassette where there is none, and replay it from then on.

    A context manager that gives the session, and a decorator for functions, asynchronous ones
    included::

        with rc.use_cassette("cassettes/gsm8k-tiny") as session:
            trainer.fit(agent_loop_manager)

    Calls of a decorated function that overlap, since it calls itself or several threads or tasks
    call it, share one session.

    Args:
        path: The cassette's directory; by default ``$ROLLOUT_CASSETTES_PATH``, else
            ``cassettes/default``.
        steps: The steps to record or replay: None for all, a number, numbers, ``"1-5,8"``, or a
            predicate.
        record_mode: ``"once"`` records if there is no cassette, and else replays; ``"none"``
            replays only; ``"new_steps"`` replays, and records the steps that are missing;
            ``"all"`` records every selected step again and keeps the others; ``"rewrite"``
            records a new cassette, which takes the old one's place if the block ends well.
        mode: See :func:`replay`.
        adapters: What to intercept; see :func:`record`.
        phases: The phases to record or replay; see :func:`record`.
        compression: See :func:`record`.
        on_unstorable: See :func:`record`.
        on_failure: What to do with what was recorded where the block ends in an exception, or not
            all could be recorded: keep the steps that were complete, or discard them and leave the
            cassette as it was. ``"rewrite"`` always discards them.
        metadata: See :func:`record`.
        on_mismatch: See :func:`replay`.
        on_unplayed: See :func:`replay`.
        restore_rng: See :func:`replay`.
        device: See :func:`replay`.

    Raises:
        ValueError: If an option's value is not one of those listed.
        TypeError: If an option is of the wrong type.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        steps: StepsArgument = None,
        record_mode: options.RecordMode = "once",
        *,
        mode: options.Mode = "cache",
        adapters: options.Adapters = None,
        phases: Iterable[str] | str | None = None,
        compression: options.Compression = "zstd",
        on_unstorable: options.OnUnstorable = "warn",
        on_failure: options.OnFailure = "keep",
        metadata: Mapping[str, Any] | None = None,
        on_mismatch: options.OnMismatch = "error",
        on_unplayed: options.OnUnplayed = "ignore",
        restore_rng: bool = True,
        device: str | torch.device | None = None,
    ) -> None:
        self.path = options.cassette_path(path)
        self.record_mode = options.word("record_mode", record_mode, options.RecordMode)
        self._shared: dict[str, Any] = {
            "steps": Steps.parse(steps),
            "adapters": options.adapters(adapters),
            "phases": options.phases(phases),
        }
        self._recording: dict[str, Any] = {
            "compression": options.compression(compression),
            "on_unstorable": options.word("on_unstorable", on_unstorable, options.OnUnstorable),
            "metadata": options.metadata(metadata),
        }
        self._replaying: dict[str, Any] = {
            "mode": options.word("mode", mode, options.Mode),
            "on_mismatch": options.word("on_mismatch", on_mismatch, options.OnMismatch),
            "on_unplayed": options.word("on_unplayed", on_unplayed, options.OnUnplayed),
            "restore_rng": options.truth("restore_rng", restore_rng),
            "device": device_named(device),
        }
        discards = options.word("on_failure", on_failure, options.OnFailure) == "discard"
        self._drafts = discards or record_mode == "rewrite"
        self._session: Session | None = None
        self._was_used = False

    def __repr__(self) -> str:
        return f"<use_cassette {self.path}, record_mode={self.record_mode!r}: {self._session}>"

    # ---- as a context manager

    def __enter__(self) -> Session:
        if self._session is not None:
            raise RuntimeError("this use_cassette is open already: make a new one")
        self._was_used = True
        self._session = self._new_session()
        try:
            return self._session.__enter__()
        except BaseException:
            self._session = None
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(kind, error, traceback)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        if not getattr(self, "_was_used", True):
            warnings.warn(
                f"use_cassette for {self.path} was neither opened nor used as a decorator",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    # ---- as a decorator

    def __call__(self, function: F) -> F:
        """Open the cassette around every call of a function.

        Raises:
            TypeError: If it is no function, or one that goes on after it returned: a generator.
        """
        generates = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if generates or inspect.isclass(function) or not callable(function):
            raise TypeError(
                f"use_cassette decorates functions and async functions, not {function!r}: open "
                "it with a with-statement inside"
            )
        self._was_used = True
        block = _SharedBlock(self._new_session)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with block:
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with ExitStack() as stack:
                    stack.enter_context(block)
                    result = function(*args, **kwargs)
                    if inspect.iscoroutine(result):
                        return _awaiting(result, stack.pop_all())
                    return result

        return cast("F", wrapper)

    # ---- choosing

    def _new_session(self) -> Session:
        """Return a session that does what the record mode says."""
        match self.record_mode:
            case "once" if records("once", self.path):
                return self._recorder("error", self._draft(copied=False))
            case "new_steps":
                return self._player("record", self._draft(copied=True))
            case "all":
                return self._recorder("overwrite", self._draft(copied=True))
            case "rewrite":
                return self._recorder("error", self._draft(copied=False))
            case _:
                return self._player("error", None)

    def _recorder(self, on_existing: options.OnExisting, draft: Draft | None) -> Recorder:
        return Recorder(
            self.path, **self._shared, **self._recording, on_existing=on_existing, draft=draft
        )

    def _player(self, on_miss: options.OnMiss, draft: Draft | None) -> Player:
        return Player(
            self.path,
            **self._shared,
            **self._replaying,
            **self._recording,
            on_miss=on_miss,
            draft=draft,
        )

    def _draft(self, *, copied: bool) -> Draft | None:
        """Return where to record, if not in the cassette itself."""
        strict = self._recording["on_unstorable"] == "error"
        return Draft(self.path, copied=copied, strict=strict) if self._drafts else None


def records(record_mode: options.RecordMode, path: Path) -> bool:
    """Tell whether a session that is opened now may write to its cassette."""
    if record_mode == "once":
        return not (path.is_dir() and Cassette(path).keys)
    return record_mode != "none"


class _SharedBlock:
    """A session that the calls of a function share while they overlap.

    Args:
        make: Makes a session; asked each time that no call is under way.
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._session: Session | None = None
        self._inside = 0
        self._error: BaseException | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        with self._lock:
            if self._session is None:
                session = self._make()
                session.__enter__()
                self._session = session
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            self._error = self._error or error  # one call that failed is enough to end badly
            if self._inside or self._session is None:
                return
            session, failure = self._session, self._error
            self._session, self._error = None, None
            traceback = None if failure is None else failure.__traceback__
            session.__exit__(None if failure is None else type(failure), failure, traceback)


async def _awaiting(result: Coroutine[Any, Any, Any], block: ExitStack) -> Any:
    """Await what a function returned, with the block still open around it."""
    with block:
        return await result
