"""Record once, replay from then on."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

from typing_extensions import Self

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette import Cassette
from rollout_cassettes.session import options
from rollout_cassettes.session.player import replay
from rollout_cassettes.session.recorder import record
from rollout_cassettes.session.session import Session
from rollout_cassettes.session.steps import StepsArgument

logger = logging.getLogger("rollout_cassettes")

F = TypeVar("F", bound=Callable[..., Any])


class use_cassette:  # noqa: N801 - used like a function
    """Record a cassette where there is none, and replay it from then on.

    A context manager that gives the session, and a decorator for functions, asynchronous ones
    included::

        with rc.use_cassette("cassettes/gsm8k-tiny") as session:
            trainer.fit(agent_loop_manager)

    Args:
        path: The cassette's directory.
        steps: The steps to record or replay: None for all, a number, numbers, ``"1-5,8"``, or a
            predicate.
        record_mode: ``"once"`` records if there is no cassette, and else replays; ``"none"``
            replays only; ``"new_steps"`` replays, and records the steps that are missing;
            ``"all"`` records every selected step again and keeps the others; ``"rewrite"``
            records a new cassette, which takes the old one's place if the block ends well.
        adapters: What to intercept; see :func:`record`.
        on_mismatch: See :func:`replay`.
        on_unplayed: See :func:`replay`.
        compression: See :func:`record`.
        metadata: See :func:`record`.

    Raises:
        ValueError: If an option's value is not one of those listed.
        TypeError: If an option is of the wrong type.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        steps: StepsArgument = None,
        record_mode: Literal["once", "none", "new_steps", "all", "rewrite"] = "once",
        *,
        adapters: Iterable[Adapter] | Adapter | None = None,
        on_mismatch: Literal["error", "warn"] = "error",
        on_unplayed: Literal["ignore", "warn", "error"] = "ignore",
        compression: Literal["zstd"] | None = "zstd",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = options.cassette_path(path)
        self.record_mode = options.word("record_mode", record_mode, options.RECORD_MODES)
        chosen = options.adapters(adapters)
        self._replay: dict[str, Any] = {
            "steps": steps,
            "adapters": chosen,
            "on_mismatch": on_mismatch,
            "on_unplayed": on_unplayed,
        }
        self._record: dict[str, Any] = {
            "steps": steps,
            "adapters": chosen,
            "compression": compression,
            "metadata": metadata,
        }
        self._session: Session | None = None
        self._fresh: Path | None = None

    def __enter__(self) -> Session:
        if self._session is not None:
            raise RuntimeError("this use_cassette is open already: make a new one")
        session = self._make_session()
        session.__enter__()
        self._session = session
        return session

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        assert session is not None  # noqa: S101 - the block was entered
        try:
            session.__exit__(kind, error, traceback)
        finally:
            self._settle(session, failed=error is not None)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Open the cassette around every call of a function."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return function(*args, **kwargs)

        return cast("F", wrapper)

    def _again(self) -> Self:
        return type(self)(self.path, record_mode=self.record_mode, **(self._replay | self._record))  # type: ignore[arg-type]

    def _make_session(self) -> Session:
        match self.record_mode:
            case "once":
                exists = self.path.is_dir() and bool(Cassette(self.path).keys)
                if exists:
                    return replay(path=self.path, **self._replay)
                return record(path=self.path, **self._record)
            case "none":
                return replay(path=self.path, **self._replay)
            case "new_steps":
                return replay(path=self.path, on_miss="record", **self._replay)
            case "all":
                return record(path=self.path, on_existing="overwrite", **self._record)
            case _:
                token = secrets.token_hex(4)
                self._fresh = self.path.with_name(f".{self.path.name}.rewrite-{token}")
                return record(path=self._fresh, **self._record)

    def _settle(self, session: Session, *, failed: bool) -> None:
        """Let a rewritten cassette take the old one's place, or throw it away."""
        fresh, self._fresh = self._fresh, None
        if fresh is None:
            return
        summary = session.summary()
        if failed or not summary.recorded or summary.faults:
            shutil.rmtree(fresh, ignore_errors=True)
            logger.warning("%s was not rewritten: the new recording is not whole", self.path)
            return
        old = fresh.with_name(fresh.name.replace(".rewrite-", ".old-"))
        if self.path.exists():
            self.path.rename(old)
        fresh.rename(self.path)
        shutil.rmtree(old, ignore_errors=True)
