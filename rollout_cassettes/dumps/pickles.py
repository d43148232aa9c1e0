"""Loading dumps. They are pickles: loading one runs whatever code it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollout_cassettes.dumps.directory import TQ_BATCH, DumpFile
from rollout_cassettes.errors import CassetteError


def require_trust(source: Path, *, trust: bool) -> None:
    """Refuse to load pickles that the user doesn't vouch for.

    Raises:
        CassetteError: If the user doesn't.
    """
    if not trust:
        raise CassetteError(
            f"verl's dumps in {source} are pickles, and loading a pickle runs whatever code is in "
            "it, with all your rights.",
            fixes=[
                "If you trust all who could write there: import them with --trust-pickle.",
                "Otherwise record anew. A cassette holds no pickles.",
            ],
        )


def load(file: DumpFile) -> Any:
    """Load a dump: a DataProto, or V1's dict.

    Raises:
        CassetteError: If it is damaged, or does not hold what it should.
    """
    read = _load_tq_batch if file.path.name == TQ_BATCH else _load_gen_batch
    return _checked(read, file)


def _checked(read: Callable[[Path], Any], file: DumpFile) -> Any:
    try:
        return read(file.path)
    except Exception as error:
        raise damaged(file, f"loading it raised {type(error).__name__}: {error}") from error


def damaged(file: DumpFile, cause: str) -> CassetteError:
    """Return the error for a dump that can't be imported."""
    return CassetteError(
        f"{file.path} can't be imported: {cause}.",
        fixes=[
            "If the file is damaged, delete its step's directory, and import the others.",
            "If something can't be found in it, import in the environment it was dumped in.",
        ],
        path=file.path,
    )


def _load_gen_batch(path: Path) -> Any:
    from verl.protocol import DataProto  # noqa: PLC0415

    loaded = DataProto.load_from_disk(path)
    if not isinstance(loaded, DataProto):
        raise TypeError(f"it holds a {type(loaded).__name__}, not a DataProto")
    return loaded


def _load_tq_batch(path: Path) -> Any:
    import torch  # noqa: PLC0415

    loaded = torch.load(path, map_location="cpu", weights_only=False)
    if not isinstance(loaded, dict) or not {"tensordict", "keys", "tags"} <= loaded.keys():
        raise TypeError("it does not hold rows with their keys and tags")
    return loaded
