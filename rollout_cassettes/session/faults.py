"""What could not be recorded: an error where the user asked for one, else a warning."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rollout_cassettes.cassette import Key
from rollout_cassettes.errors import CassetteError, CassetteWriteError, UnstorableValueError

logger = logging.getLogger("rollout_cassettes")


class Faults:
    """What could not be recorded in a cassette.

    Args:
        path: The cassette's directory.
        strict: Raise what goes wrong while recording, instead of logging it.

    Attributes:
        causes: What went wrong, by the interaction that is missing for it.
    """

    def __init__(self, path: Path, *, strict: bool) -> None:
        self.path = path
        self.strict = strict
        self.causes: dict[Key, str] = {}

    def tolerated(self, key: Key) -> Tolerance:
        """Return a block whose errors don't reach the run, unless the user asked for strictness."""
        return Tolerance(self, key)

    def add(self, key: Key, error: Exception) -> CassetteError | None:
        """Take note of an error; return what is to be raised, or log it."""
        self.causes.setdefault(key, cause_of(error))
        if self.strict:
            return _placed(error, self.path, key)
        logger.warning(
            "%s was not recorded in %s: %s",
            key,
            self.path,
            cause_of(error),
            exc_info=None if isinstance(error, CassetteError) else error,
        )
        return None


@dataclass(frozen=True)
class Tolerance:
    """A block that works on the recording of one interaction."""

    faults: Faults
    key: Key

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        raised = self.faults.add(self.key, error)
        if raised is not None and raised is not error:
            raise raised from error
        return raised is None


def cause_of(error: Exception) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, CassetteWriteError) and isinstance(error.__cause__, OSError):
        return cause_of(error.__cause__)
    text = error.what if isinstance(error, CassetteError) else str(error)
    return f"{type(error).__name__}: {text}"


def _placed(error: Exception, path: Path, key: Key) -> CassetteError:
    """Return a fault of the recording as an error that says which step it was."""
    what = f"{str(key).capitalize()} can't be recorded in {path}: "
    warn = "Let the run go on without it: record(..., on_unstorable='warn')."
    if isinstance(error, CassetteWriteError):
        return error
    if isinstance(error, UnstorableValueError):
        return UnstorableValueError(
            what + error.what,
            fixes=[*error.fixes, warn],
            location=error.location,
            type_name=error.type_name,
            reason=error.reason,
        )
    return CassetteError(what + cause_of(error), fixes=[warn])


def a_file(path: Path) -> CassetteWriteError:
    """Return the error for a path where a file is, and no directory can be made."""
    return CassetteWriteError(
        f"{path} is a file, and a cassette is a directory.",
        fixes=["Record into another directory: record(path=...)."],
        path=path,
        step=None,
        phase=None,
    )


def not_writable(path: Path, key: Key | None, error: OSError) -> CassetteWriteError:
    """Return the error for what the operating system did not let us write."""
    what = "A cassette" if key is None else str(key).capitalize()
    return CassetteWriteError(
        f"{what} can't be written to {path}: {error}.",
        fixes=[
            "Look at the directory's permissions, and at the space and the quota of its disk.",
            "Record into another directory: record(path=...).",
            "Let the run go on without what can't be written: record(..., on_unstorable='warn').",
        ],
        path=path,
        step=None if key is None else key.step,
        phase=None if key is None else key.phase,
    )
