"""What slime and miles write with ``--save-debug-rollout-data``: the samples of each rollout.

The option is a path with ``{rollout_id}`` in it; of evaluations ``eval_`` comes before the number. A
file holds the number and, as dicts, the samples that were trained on. They are pickles, of plain
values and tensors in most cases, and those torch reads without running anything.

Source: slime 0.3.0, ``slime/observability/rollout_data_utils.py``.
"""

from __future__ import annotations

import glob
import itertools
import logging
import pickle
import re
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Exchange
from rollout_cassettes.dumps.directory import DumpDirectory, DumpFile
from rollout_cassettes.errors import CassetteError

logger = logging.getLogger("rollout_cassettes")

_FIELD = "{rollout_id}"
_EVALUATION = "eval_"


def find(source: Path) -> DumpDirectory | None:
    """Find the files of a run; None where there are none.

    Args:
        source: The path that slime was given, with ``{rollout_id}`` in it; or a directory with
            files that are named by numbers.
    """
    template = source if _FIELD in str(source) else source / f"{_FIELD}.pt"
    base = base_of(template)
    before, _, after = str(template).partition(_FIELD)
    number = rf"(?P<evaluation>{_EVALUATION})?(?P<step>[0-9]{{1,18}})"
    named = re.compile(
        re.escape(before) + number + re.escape(after).replace(r"\{rollout_id\}", ".*")
    )
    pattern = glob.escape(str(template.relative_to(base))).replace(_FIELD, "*")
    found = [named.fullmatch(str(path)) for path in base.glob(pattern)]
    matches = [match for match in found if match is not None]
    files = [DumpFile(Path(m[0]), int(m["step"]), 0, None) for m in matches if not m["evaluation"]]
    if len(files) < len(matches):
        logger.warning(
            "%d evaluations in %s are left out: their files don't say which data set a sample is of",
            len(matches) - len(files),
            base,
        )
    return DumpDirectory(source, sorted(files, key=_step), {}, None, 0) if files else None


def base_of(source: Path) -> Path:
    """Return the directory below which the files are."""
    fixed = itertools.takewhile(lambda part: _FIELD not in part, source.parts)
    return Path(*fixed)


def load(file: DumpFile, *, trust: bool) -> list[dict[str, Any]]:
    """Return the samples of a file.

    Args:
        file: The file.
        trust: Load whatever is in it, which runs whatever code is in it.

    Raises:
        CassetteError: If it holds more than plain values and tensors, and is not trusted.
        TypeError: If it is no such file.
    """
    import torch  # noqa: PLC0415

    try:
        loaded = torch.load(file.path, map_location="cpu", weights_only=not trust)
    except pickle.UnpicklingError as error:
        if trust:
            raise
        raise CassetteError(
            f"{file.path} holds more than plain values and tensors, and loading that runs whatever "
            "code is in it, with all your rights.",
            fixes=[
                "If you trust all who could write there: import it with --trust-pickle.",
                "Otherwise record anew. A cassette holds no pickles.",
            ],
        ) from error
    if not isinstance(loaded, dict) or loaded.get("rollout_id") != file.step:
        raise TypeError(f"it is not of the rollout {file.step}")
    samples: list[dict[str, Any]] = loaded["samples"]
    return samples


def exchange(samples: list[dict[str, Any]]) -> Exchange:
    """Return dumped samples as the adapter replays them: a prompt is drawn for each group."""
    groups = len({each.get("group_index", number) for number, each in enumerate(samples)})
    return Exchange(
        [{"drawn": groups, "rows": []}],
        {"output": None, "dumped": samples, "batch_size": groups},
    )


def _step(file: DumpFile) -> int:
    return file.step
