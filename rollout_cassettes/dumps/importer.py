"""From dumps to a cassette: all of it, or nothing."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from rollout_cassettes.adapters import (
    Adapter,
    EntryPoint,
    Exchange,
    Role,
    Slime,
    VerlFullyAsync,
    VerlV0,
    VerlV1,
)
from rollout_cassettes.adapters.verl.installed import require_installed
from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.fresh import fresh, refuse_existing
from rollout_cassettes.cassette.manifest import SUFFIX, Manifest, TensorsFile
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.tree import split
from rollout_cassettes.cassette.writer import Writer
from rollout_cassettes.dumps import debug_data, gen_batch, tq_batch
from rollout_cassettes.dumps.directory import GEN_BATCH, TQ_BATCH, DumpDirectory, DumpFile
from rollout_cassettes.dumps.pickles import damaged, load, require_trust
from rollout_cassettes.errors import (
    CassetteError,
    UnstorableValueError,
)

Progress = Callable[[Sequence[DumpFile]], Iterable[DumpFile]]

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter for adapter in (VerlV1(), VerlV0(), VerlFullyAsync(), Slime())
}
"""The adapters that can replay a dump, by name."""

_COMPRESSION = "zstd"
_FRAMEWORKS = ("verl", "transfer_queue")
_DISTRIBUTION = "rollout_cassettes"


@dataclass(frozen=True)
class Import:
    """What was imported.

    Attributes:
        source: The directory of the dumped steps.
        destination: The cassette's directory.
        adapter: The adapter that replays it.
        steps: The imported steps.
        interactions: How many interactions they are.
        incomplete: Why a step was left out, by step.
        nbytes: What was written, in bytes.
    """

    source: str
    destination: str
    adapter: str
    steps: list[int]
    interactions: int
    incomplete: dict[int, str]
    nbytes: int

    def to_json(self) -> str:
        """Write the result for machines."""
        return json.dumps(asdict(self), indent=2)


def import_dumps(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    adapter: str | None = None,
    trust_pickle: bool = False,
    progress: Progress = iter,
) -> Import:
    """Make a cassette of the dumps of a run: of verl's, slime's or miles'.

    Steps that are not whole are left out, as SkipManager leaves them out; what can't be imported
    for another reason is an error. Nothing is at the destination until everything is.

    Args:
        source: verl's ``dump_dir``, or a directory below it, with the dumps of one run; or the path
            that slime's ``--save-debug-rollout-data`` was given, or the directory of its files.
        destination: The cassette's directory, new or empty.
        adapter: The adapter that is to replay it; by default found out from the dumps.
        trust_pickle: Load the dumps, which runs whatever code is in them; slime's need it where
            they hold more than plain values and tensors.
        progress: Given the dumps, gives them one by one; each is done when the next is asked for.

    Raises:
        CassetteError: If there are no dumps, or those of several runs; if they are not trusted;
            if verl isn't installed; if one is damaged.
        StepExistsError: If there is a cassette at the destination.
        CassetteWriteError: If the destination can't be written to.
        UnstorableValueError: If a dump holds a value that a cassette can't hold.
    """
    source, target = Path(source).expanduser(), Path(destination).expanduser().resolve()
    dumps = _find(source, adapter)
    is_debug_data = _is_debug_data(dumps.files[0])
    if not is_debug_data:
        require_trust(dumps.path, trust=trust_pickle)
    refuse_existing(target)
    if not is_debug_data:
        require_installed(_FRAMEWORKS, "The dumps hold objects of verl's")
    with fresh(target, _COMPRESSION) as writer:
        conversion = _Conversion(source, dumps, adapter, writer, trust=trust_pickle)
        for _, files in itertools.groupby(progress(dumps.files), lambda file: file.step):
            conversion.add(list(files))
    return Import(
        source=str(dumps.path),
        destination=str(target),
        adapter=conversion.adapter.name,
        steps=sorted({file.step for file in dumps.files}),
        interactions=len(dumps.files),
        incomplete=dumps.incomplete,
        nbytes=conversion.nbytes,
    )


class _Conversion:
    """Writes the dumps of one run to one cassette.

    Attributes:
        adapter: The adapter that replays them; known from the first on.
        nbytes: What was written, in bytes.
    """

    adapter: Adapter

    def __init__(
        self,
        source: Path,
        dumps: DumpDirectory,
        adapter: str | None,
        writer: Writer,
        *,
        trust: bool,
    ) -> None:
        self._source = debug_data.base_of(source)
        self._trust = trust
        self._dumps = dumps
        self._chosen = None if adapter is None else ADAPTERS[adapter]
        self._first: DumpFile | None = None
        self._writer = writer
        self.nbytes = 0

    def add(self, files: list[DumpFile]) -> None:
        """Write the dumps of a step, each as an interaction."""
        exchanges = []
        for file in files:
            read = _read(file, self._dumps, trust=self._trust)
            self._settle(file, self._chosen or read.adapter)
            exchanges.append(read.exchange)
        if len(files) > 1:
            exchanges = tq_batch.joined(exchanges)
        for file, exchange in zip(files, exchanges, strict=True):
            self._add(file, exchange)

    def _add(self, file: DumpFile, exchange: Exchange) -> None:
        key = Key(file.step, index=file.batch)
        try:
            written = self._write(key, file, exchange)
        except UnstorableValueError as error:
            raise UnstorableValueError(
                f"{file.path} can't be imported: {error.what}",
                fixes=error.fixes,
                location=error.location,
                type_name=error.type_name,
                reason=error.reason,
            ) from error
        manifest = self._writer.path / (key.stem + SUFFIX)
        self.nbytes += written.tensors.size + manifest.stat().st_size

    def _settle(self, file: DumpFile, adapter: Adapter) -> None:
        """Let all dumps of a run be replayed by one adapter."""
        if self._first is None:
            self._first, self.adapter = file, adapter
        elif adapter.name != self.adapter.name:
            raise CassetteError(
                f"{file.path} looks like a dump for the adapter {adapter.name!r}, and "
                f"{self._first.path} like one for {self.adapter.name!r}.",
                fixes=["Say which adapter is meant, with --adapter."],
            )

    def _write(self, key: Key, file: DumpFile, exchange: Exchange) -> Manifest:
        trees = {"request": exchange.request, "response": exchange.response, "random_state": {}}
        parts = {name: split(tree, name, strict=True) for name, tree in trees.items()}
        skeletons = {name: part.skeleton for name, part in parts.items()}
        tensors = {path: data for part in parts.values() for path, data in part.tensors.items()}
        dumped_at = datetime.fromtimestamp(file.path.stat().st_mtime, timezone.utc)

        def manifest(entry: TensorsFile) -> Manifest:
            return Manifest(
                step=key.step,
                step_kind=self.adapter.step_kind,
                phase=key.phase,
                index=key.index,
                rank=key.rank,
                adapter=self.adapter.name,
                entry_point=str(_rollouts(self.adapter)),
                versions=_versions((_DISTRIBUTION,)),  # what dumped it, a dump does not say
                tensors=entry,
                trees=Packed.pack(skeletons, _COMPRESSION),
                fingerprint=None,  # of what was asked for, a dump holds nothing to compare
                omissions=[],
                recorded_at=dumped_at.isoformat(timespec="microseconds"),
                host="",
                seconds=0.0,
                metadata=self._origin(file),
            )

        return self._writer.write(key, tensors, manifest)

    def _origin(self, file: DumpFile) -> dict[str, Any]:
        return {
            "imported": {
                "file": file.path.relative_to(self._source).as_posix(),
                "by": f"{_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)}",
                "read_with": _versions(self.adapter.distributions),
            }
        }


def _rollouts(adapter: Adapter) -> EntryPoint:
    """Return the entry point that hands over what was dumped."""
    handing_over = (Role.WHOLE, Role.SAMPLE)
    return next(point for point in adapter.entry_points if point.role in handing_over)


class _Read(NamedTuple):
    """What a dump holds.

    Attributes:
        adapter: The adapter whose rollouts it looks like.
        exchange: What that one would have recorded.
    """

    adapter: Adapter
    exchange: Exchange


def _find(source: Path, adapter: str | None) -> DumpDirectory:
    """Return the dumps that are to be imported.

    Raises:
        CassetteError: If there are none, or those of several runs.
    """
    found = debug_data.find(source) if adapter in (None, Slime.name) else None
    if found is not None:
        return found
    if adapter == Slime.name or debug_data.base_of(source) != source:
        raise CassetteError(
            f"{source} holds no debug data of slime's or miles'.",
            fixes=[
                "Give the path that --save-debug-rollout-data was given, with {rollout_id} in it.",
                "Or the directory of its files, if they are named 0.pt, 1.pt and so on.",
            ],
        )
    return DumpDirectory.find(source, None if adapter is None else _file_of(adapter))


def _is_debug_data(file: DumpFile) -> bool:
    return file.path.name not in (GEN_BATCH, TQ_BATCH)


def _read(file: DumpFile, dumps: DumpDirectory, *, trust: bool) -> _Read:
    """Load and convert a dump.

    Raises:
        CassetteError: If it is damaged, or not trusted.
    """
    try:
        if _is_debug_data(file):
            samples = debug_data.load(file, trust=trust)
            return _Read(ADAPTERS[Slime.name], debug_data.exchange(samples))
        loaded = load(file)
        if file.path.name == GEN_BATCH:
            adapter = gen_batch.adapter_of(loaded)
            return _Read(adapter, gen_batch.exchange(loaded, file.step, dumps.n))
        _check_rows(file, loaded)
        return _Read(ADAPTERS["verl_v1"], tq_batch.exchange(loaded, dumps.prompts))
    except CassetteError:
        raise
    except Exception as error:
        raise damaged(file, f"it holds something else ({type(error).__name__}: {error})") from error


def _check_rows(file: DumpFile, payload: dict[str, Any]) -> None:
    rows = {name: len(payload[name]) for name in ("keys", "tags", "tensordict")}
    said = rows["keys"] if file.rows is None else file.rows
    if set(rows.values()) != {said}:
        told = ", ".join(f"{count} {name}" for name, count in rows.items())
        raise damaged(file, f"it should hold {said} trajectories, and holds {told}")


def _file_of(adapter: str) -> str:
    """Return the name of the files that are dumped where an adapter records."""
    if adapter not in ADAPTERS:
        raise CassetteError(f"verl's dumps are for {', '.join(ADAPTERS)}; not for {adapter!r}.")
    return TQ_BATCH if adapter == "verl_v1" else GEN_BATCH


def _versions(distributions: Sequence[str]) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in distributions:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
