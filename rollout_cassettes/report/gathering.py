"""What a report needs of one interaction: its figures, and blocks of its rows and their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rollout_cassettes.cassette import Interaction, Manifest
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import shorten
from rollout_cassettes.report.blocks import ROWS_EACH, packed, text_block
from rollout_cassettes.report.measures import Criteria, RowMeasures, StepMeasures, brief
from rollout_cassettes.trajectories import Trajectory

_EXCERPT = 120  # characters
_OWN = tuple(each.name for each in fields(RowMeasures) if each.name != "written")


@dataclass(frozen=True)
class Gathered:
    """One interaction, as a report shows it.

    Attributes:
        name: Its place in words: ``"3"``, ``"3.val"``, ``"3.1.rank2"``.
        step: The step that it is filed under.
        phase: ``"train"``, ``"val"``, ….
        recorded_at: When the live call ended, ISO 8601, UTC.
        seconds: How long the live call took; None where it took no time, as with what was imported.
        nbytes: Its size on disk, in bytes.
        measures: Its trajectories in figures.
        blocks: Blocks for the page, by name: ``rows`` has its trajectories in figures, ``0``,
            ``1``, … their text.
    """

    name: str
    step: int
    phase: str
    recorded_at: str
    seconds: float | None
    nbytes: int
    measures: StepMeasures
    blocks: dict[str, str]

    def figures(self) -> dict[str, Any]:
        """Return all but the blocks, as JSON has it."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        del own["measures"], own["blocks"]
        return own | asdict(self.measures)


def gather(
    interaction: Interaction,
    criteria: Criteria,
    decode: Callable[[list[int]], str] | None = None,
) -> Gathered:
    """Read an interaction for a report.

    Args:
        interaction: The interaction, opened with ``numpy=True``.
        criteria: What counts as passed and as truncated.
        decode: A tokenizer's: takes token ids, gives their text.

    Raises:
        CassetteCorruptError: If a file is damaged, altered or missing.
    """
    manifest, key = interaction.manifest, interaction.key
    rows = sorted(interaction.trajectories, key=lambda row: row.place)
    measured = [RowMeasures.of(row, manifest.step_kind, criteria) for row in rows]
    blocks = {}
    told: list[tuple[str, str]] = []
    for start in range(0, len(rows), ROWS_EACH):
        part = rows[start : start + ROWS_EACH]
        if decode is not None:
            part = [row.decoded(decode) for row in part]
        blocks[str(start // ROWS_EACH)] = packed(text_block(part))
        told += [(_excerpt(row.question), _excerpt(_answer(row))) for row in part]
    blocks["rows"] = packed(_columns(rows, measured, told))
    return Gathered(
        name=f"{key.step}{key.stem.removeprefix(f'step-{key.step:06d}')}",
        step=key.step,
        phase=key.phase,
        recorded_at=manifest.recorded_at,
        seconds=brief(manifest.seconds) or None,
        nbytes=interaction.nbytes,
        measures=StepMeasures.of(rows, measured, criteria),
        blocks=blocks,
    )


def about(manifest: Manifest, adapters: Iterable[str]) -> dict[str, Any]:
    """Return what is known of a recording as a whole.

    Args:
        manifest: The manifest of its last interaction.
        adapters: Who recorded it.
    """
    return {
        "adapters": sorted(adapters),
        "host": visible(manifest.host),
        "step_kind": manifest.step_kind,
        "versions": manifest.versions,
        "metadata": {visible(n): visible(shorten(v)) for n, v in manifest.metadata.items()},
    }


def _columns(
    rows: Sequence[Trajectory], measured: Sequence[RowMeasures], told: Sequence[tuple[str, str]]
) -> dict[str, list[Any]]:
    """Return the trajectories as columns; those of which nothing is known are left out."""
    columns: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows]
        for name in ("row", "group", "session", "output_index", "prompt_length")
    }
    columns |= {name: [getattr(each, name) for each in measured] for name in _OWN}
    columns |= {"prompt": [each[0] for each in told], "response": [each[1] for each in told]}
    return {n: c for n, c in columns.items() if any(cell is not None for cell in c)}


def _answer(row: Trajectory) -> str | None:
    if row.response is not None or row.response_ids is None:
        return row.response
    return " ".join(map(str, row.response_ids[:_EXCERPT].tolist()))


def _excerpt(text: str | None) -> str:
    """Return the beginning of a text in one line."""
    return "" if text is None else visible(" ".join(text[: 2 * _EXCERPT].split())[:_EXCERPT])
