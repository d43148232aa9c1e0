"""What is known of a recording as a whole, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from rollout_cassettes.display.amounts import readable_age, readable_bytes, readable_seconds
from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import named_steps, shorten
from rollout_cassettes.trajectories import Figures


def heading(
    title: str,
    figures: Sequence[Figures],
    *,
    adapters: Sequence[str],
    host: str,
    versions: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> Text:
    """Write the lines above a table.

    Args:
        title: What it is.
        figures: Its interactions.
        adapters: Who recorded them.
        host: Where the last one was recorded.
        versions: Versions of what the batches came from.
        metadata: What the user gave.
    """
    last = max((each.recorded_at for each in figures), default="")
    facts = (
        ", ".join(adapters),
        named_steps(each.step for each in figures),
        readable_bytes(sum(each.nbytes for each in figures)),
        f"{readable_seconds(sum(each.seconds for each in figures))} of generation",
    )
    lines = [
        " · ".join(facts),
        f"recorded {_time(last)} on {host}, {readable_age(last)} ago" if last else "",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        ", ".join(f"{name} = {shorten(value, 60)}" for name, value in metadata.items()),
    ]
    told = [visible(line) for line in lines if line]
    return Text.assemble(
        (visible(title), "bold"), *(part for line in told for part in ("\n", line))
    )


def _time(recorded_at: str) -> str:
    return f"{datetime.fromisoformat(recorded_at):%Y-%m-%d %H:%M} UTC"
