"""Recording live calls into a cassette, without ever harming the run that makes them."""

from __future__ import annotations

import importlib.metadata
import logging
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.manifest import Manifest, TensorsFile
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.tree import Split, split
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.patching import Answer, Call, Half
from rollout_cassettes.session.matching import fingerprint
from rollout_cassettes.session.random_state import RandomState

logger = logging.getLogger("rollout_cassettes")


class Asked(NamedTuple):
    """A request, as it was when its call was made: the call may change what it is given.

    Attributes:
        value: What the adapter gave for it.
        parts: Its skeleton, and copies of its tensors.
        fingerprint: Its rows' fingerprints; None where they are not compared.
        seconds: How long its call took, if it was a submit.
        random_state: The generators that its call advanced, if it was a submit.
    """

    value: Any
    parts: Split
    fingerprint: list[str] | None
    seconds: float = 0.0
    random_state: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Lived(NamedTuple):
    """A call that was made live.

    Attributes:
        asked: The requests that it answers, oldest first.
        result: What it returned.
        seconds: How long it took, without the submits before it.
        random_state: The generators that it advanced.
    """

    asked: Sequence[Asked]
    result: Any
    seconds: float
    random_state: dict[str, Any]

    def total_seconds(self) -> float:
        """Return how long the interaction took, submits included."""
        return self.seconds + sum(each.seconds for each in self.asked)

    def states(self, half: Half) -> dict[str, dict[str, Any]]:
        """Return the generators that moved, by the half of the interaction that moved them."""
        submits = {name: state for each in self.asked for name, state in each.random_state.items()}
        halves = {Half.SUBMIT.value: submits, half.value: self.random_state}
        return {half: moved for half, moved in halves.items() if moved}

    def fingerprint(self) -> list[str] | None:
        """Return the fingerprints of all requests' rows; None where they are not compared."""
        marks = [each.fingerprint for each in self.asked]
        if not marks or any(mark is None for mark in marks):
            return None
        return [row for mark in marks for row in mark or ()]


class Tape:
    """What turns live calls into recorded interactions.

    Args:
        path: The cassette's directory.
        compression: ``"zstd"`` or None.
        strict: Raise what goes wrong while recording, instead of logging it.
        metadata: Put into every manifest.

    Attributes:
        recorded: The interactions that are safely on the disk, with the seconds that they took.
        faults: The interactions that could not be recorded, with the cause.
        nbytes: What was written, in bytes.
    """

    def __init__(
        self, path: Path, compression: str | None, *, strict: bool, metadata: dict[str, Any]
    ) -> None:
        self.path = path
        self.recorded: dict[Key, float] = {}
        self.faults: dict[Key, str] = {}
        self.nbytes = 0
        self._compression = compression
        self._strict = strict
        self._metadata = split(metadata, "metadata", strict=True).skeleton
        self._writer = Writer(path, compression)
        self._open_requests: dict[str, list[Asked]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Give the cassette free for other writers."""
        self._writer.close()

    def submit(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        """Make a submit live, and keep its request until its interaction is sampled."""
        asked: Asked | None = None
        with self._tolerating(key):
            ordinal = len(self._open_requests.get(adapter.name, ()))
            asked = _asked(adapter, call, "request", ordinal)
        before, started = RandomState.now(), time.perf_counter()
        result = yield
        if asked is not None:
            advanced = RandomState.now().advanced_since(before)
            asked = asked._replace(
                seconds=time.perf_counter() - started, random_state=advanced
            )  # fmt: skip
            with self._lock:
                self._open_requests.setdefault(adapter.name, []).append(asked)
        return result

    def take(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        """Make a whole call or a sample live, and record it."""
        own: list[Asked] = []
        if call.point.half is Half.WHOLE:
            with self._tolerating(key):
                own = [_asked(adapter, call, "request")]
        before, started = RandomState.now(), time.perf_counter()
        result = yield
        seconds = time.perf_counter() - started
        if key not in self.faults:
            with self._tolerating(key):
                advanced = RandomState.now().advanced_since(before)
                lived = Lived(own or self._taken(adapter), result, seconds, advanced)
                self._write(adapter, call, key, lived)
        return result

    def _taken(self, adapter: Adapter) -> list[Asked]:
        with self._lock:
            return self._open_requests.pop(adapter.name, [])

    def _write(self, adapter: Adapter, call: Call, key: Key, lived: Lived) -> None:
        response = adapter.capture(call, lived.result, [each.value for each in lived.asked])
        parts = split(response, "response", strict=self._strict)
        states = split(lived.states(call.point.half), "random_state")
        requests = [each.parts.skeleton for each in lived.asked]
        skeletons = {
            "request": requests[0] if call.point.half is Half.WHOLE else requests,
            "response": parts.skeleton,
            "random_state": states.skeleton,
        }
        every = [*(each.parts for each in lived.asked), parts, states]
        omissions = [omission for part in every for omission in part.omissions]

        def manifest(entry: TensorsFile) -> Manifest:
            return Manifest(
                step=key.step,
                step_kind=adapter.step_kind,
                phase=key.phase,
                index=key.index,
                rank=key.rank,
                adapter=adapter.name,
                entry_point=str(call.point),
                versions=_versions(adapter.distributions),
                tensors=entry,
                trees=Packed.pack(skeletons, self._compression),
                fingerprint=lived.fingerprint(),
                omissions=omissions,
                recorded_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                host=platform.node(),
                seconds=lived.total_seconds(),
                metadata=self._metadata,
            )

        data = {name: tensor for part in every for name, tensor in part.tensors.items()}
        with self._lock:
            written = self._writer.write(key, data, manifest)
            self.recorded[key] = written.seconds
            self.nbytes += written.tensors.size
        _report(key, self.path, written)

    @contextmanager
    def _tolerating(self, key: Key) -> Iterator[None]:
        """Keep a fault of the recording from the run, unless the user asked for strictness."""
        try:
            yield
        except Exception as error:
            self.faults[key] = f"{type(error).__name__}: {error}"
            if self._strict:
                raise
            logger.warning("%s was not recorded in %s: %s", key, self.path, error, exc_info=error)


def _asked(adapter: Adapter, call: Call, *path: object) -> Asked:
    value = adapter.request(call)
    parts = split(value, *path)
    copies = {name: tensor.clone() for name, tensor in parts.tensors.items()}
    half = call.point.half
    rows = adapter.rows(value if half is Half.WHOLE else [value])
    marks = None if rows is None else fingerprint(rows)
    return Asked(value, parts._replace(tensors=copies), marks)


def _report(key: Key, path: Path, manifest: Manifest) -> None:
    logger.info("recorded %s in %s: %d bytes of tensors", key, path, manifest.tensors.size)
    for omission in manifest.omissions:
        logger.warning(
            "%s was recorded without %s, a %s: %s. It can't be replayed until the type is taught "
            "with rollout_cassettes.register_codec and the step is recorded again.",
            key,
            omission.path,
            omission.type_name,
            omission.reason,
        )


@cache
def _versions(distributions: tuple[str, ...]) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("rollout_cassettes", *distributions):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
