"""Recording live calls into a cassette, without ever harming the run that makes them."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
import threading
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.manifest import SUFFIX, Manifest, TensorsFile
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.tree import Omission, split
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Answer, Call, Role
from rollout_cassettes.session.faults import Faults, a_file, not_writable
from rollout_cassettes.session.live import Asked, Lived, Stopwatch, Waiting

logger = logging.getLogger("rollout_cassettes")

Line = tuple[str, str]
"""An adapter's name and a phase: what is submitted there is sampled there."""


class Tape:
    """What turns live calls into recorded interactions. Threads share it.

    Args:
        path: The cassette's directory.
        compression: ``"zstd"`` or None.
        strict: Raise what goes wrong while recording, instead of logging it.
        metadata: Put into every manifest; plain values.
        cassette: What messages call it, where it is recorded somewhere else first.

    Attributes:
        recorded: The interactions that are safely on the disk, with the seconds that they took.
        faults: What could not be recorded, and why.
        omissions: What had to be left out of recorded interactions.
        nbytes: What was written, in bytes.

    Raises:
        CassetteInUseError: If another session, here or in another process, writes to it.
        CassetteWriteError: If the path is a file, or ``strict`` and it can't be written to.
    """

    def __init__(
        self,
        path: Path,
        compression: str | None,
        *,
        strict: bool,
        metadata: dict[str, Any],
        cassette: Path | None = None,
    ) -> None:
        self.path = path
        self.cassette = cassette or path
        self.recorded: dict[Key, float] = {}
        self.faults = Faults(self.cassette, strict=strict)
        self.omissions: dict[Key, list[Omission]] = {}
        self.nbytes = 0
        self._compression = compression
        self._metadata = metadata
        self._waiting: dict[Line, Waiting] = {}
        self._lost: set[Line] = set()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_open = True
        self._writer = self._first_writer()

    def close(self) -> None:
        """Give the cassette free for other writers; a call that ends later is not recorded."""
        with self._lock:
            self._is_open = False
            if self._writer is not None:
                self._writer.close()

    def left_out(self) -> dict[str, list[str]]:
        """Return what recorded interactions lack: the values' places and types."""
        return {
            str(key): [f"{each.path} (a {each.type_name})" for each in omissions]
            for key, omissions in dict(self.omissions).items()
        }

    def discard(self, keys: Iterable[Key]) -> None:
        """Take interactions away, except those that were recorded by this tape."""
        with self._lock:
            for key in keys:
                if key not in self.recorded:
                    self._open_writer().remove(key)

    def submit(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        """Make a submit live, and keep its request until its interaction is sampled."""
        line = (adapter.name, key.phase)
        asked: Asked | None = None
        watch: Stopwatch | None = None
        with self.faults.tolerated(key):
            self._refuse_fork()
            asked = self._keep(adapter, call, line)
            watch = Stopwatch()
        try:
            result = yield True
        except BaseException:
            self._drop(line, asked)
            raise
        if asked is None or watch is None:
            self._lost.add(line)
        else:
            asked.seconds, asked.random_state = watch.seconds(), watch.advanced()
        return result

    def poll(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        """Make a poll live, and keep its answer until an interaction is sampled."""
        result = yield True
        with self.faults.tolerated(key):
            self._refuse_fork()
            answer = adapter.capture(call, result, ())
            with self._lock:
                polls = self._waiting.setdefault((adapter.name, key.phase), Waiting()).polls
                polls.append(split(answer, "polls", len(polls), strict=self.faults.strict))
        return result

    def take(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        """Make a whole call or a sample live, and record it."""
        own: Waiting | None = None
        watch: Stopwatch | None = None
        with self.faults.tolerated(key):
            self._refuse_fork()
            if call.point.role is not Role.SAMPLE:
                own = Waiting([Asked.of(adapter, call, strict=self.faults.strict)])
            watch = Stopwatch()
        result = yield True
        if watch is not None:
            with self.faults.tolerated(key):
                ended = datetime.now(timezone.utc)
                seconds, advanced = watch.seconds(), watch.advanced()
                before = self._taken((adapter.name, key.phase)) if own is None else own
                lived = Lived(before.asked, before.polls, result, seconds, advanced, ended)
                self._write(adapter, call, key, lived)
        return result

    def _first_writer(self) -> Writer | None:
        """Open the cassette for writing; None where it can't be, but the run is to go on."""
        try:
            if self.path.is_file():
                raise a_file(self.path)
            return Writer(self.path, self._compression)
        except OSError as error:
            if self.faults.strict:
                raise not_writable(self.cassette, None, error) from error
            logger.warning(
                "%s can't be written to: what is recorded is lost unless that changes (%s)",
                self.cassette,
                error,
            )
            return None

    def _keep(self, adapter: Adapter, call: Call, line: Line) -> Asked:
        """Add a request to those that wait for their sample."""
        with self._lock:
            waiting = self._waiting.setdefault(line, Waiting()).asked
            ordinal = waiting[-1].ordinal + 1 if waiting else 0
            asked = Asked.of(adapter, call, ordinal, strict=self.faults.strict)
            waiting.append(asked)
        return asked

    def _drop(self, line: Line, asked: Asked | None) -> None:
        """Forget a request whose submit failed."""
        with self._lock:
            waiting = self._waiting.get(line, Waiting()).asked
            waiting[:] = [each for each in waiting if each is not asked]

    def _taken(self, line: Line) -> Waiting:
        """Return what a sample answers."""
        with self._lock:
            waiting = self._waiting.pop(line, Waiting())
            if line in self._lost:
                self._lost.remove(line)
                raise CassetteError("a request that it answers could not be kept")
        return waiting

    def _write(self, adapter: Adapter, call: Call, key: Key, lived: Lived) -> None:
        content = lived.content(adapter, call, strict=self.faults.strict)

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
                trees=Packed.pack(content.skeletons, self._compression),
                fingerprint=lived.fingerprint(),
                omissions=content.omissions,
                recorded_at=lived.ended.isoformat(timespec="microseconds"),
                host=platform.node(),
                seconds=lived.total_seconds(),
                metadata=self._metadata,
            )

        with self._lock:
            try:
                written = self._open_writer().write(key, content.tensors, manifest)
                self._commit(key, written)
            except OSError as error:
                raise not_writable(self.cassette, key, error) from error
        _report(key, self.cassette, written)

    def _refuse_fork(self) -> None:
        """Refuse to record in a forked process: it would file its calls under its parent's keys."""
        if os.getpid() != self._process:
            raise CassetteError("the call was made in a forked process, which does not record")

    def _open_writer(self) -> Writer:
        """Return the writer; try again to open it where that failed before."""
        if not self._is_open:
            raise CassetteError("the call ended after the with-block")
        if self._writer is None:
            self._writer = Writer(self.path, self._compression)
        return self._writer

    def _commit(self, key: Key, written: Manifest) -> None:
        """Take note of an interaction that is on the disk."""
        self.faults.causes.pop(key, None)
        self.recorded[key] = written.seconds
        self.nbytes += written.tensors.size + (self.path / (key.stem + SUFFIX)).stat().st_size
        if written.omissions:
            self.omissions[key] = written.omissions


def _report(key: Key, path: Path, manifest: Manifest) -> None:
    logger.info("recorded %s in %s: %d bytes of tensors", key, path, manifest.tensors.size)
    for omission in manifest.omissions:
        logger.warning(
            "%s was recorded in %s without %s, a %s: %s. It can't be replayed until the type is "
            "taught with rollout_cassettes.register_codec and the step is recorded again.",
            key,
            path,
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
