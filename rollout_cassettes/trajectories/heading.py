"""What is known of a recording as a whole, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rollout_cassettes.display.amounts import readable_age, readable_bytes, readable_seconds
from rollout_cassettes.errors import named_steps, shorten
from rollout_cassettes.trajectories.figures import Figures


def heading(
    title: str,
    figures: Sequence[Figures],
    *,
    adapters: Sequence[str],
    host: str,
    versions: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> list[str]:
    """Return the lines above a table; the first is the title.

    Args:
        title: What it is.
        figures: Its interactions, at least one.
        adapters: Who recorded them.
        host: Where the last one was recorded.
        versions: Versions of what the batches came from.
        metadata: What the user gave.
    """
    last = max(each.recorded_at for each in figures)
    facts = (
        ", ".join(adapters),
        named_steps(each.step for each in figures),
        readable_bytes(sum(each.nbytes for each in figures)),
        f"{readable_seconds(sum(each.seconds for each in figures))} of generation",
    )
    when = f"recorded {datetime.fromisoformat(last):%Y-%m-%d %H:%M} UTC on {host}"
    lines = (
        title,
        " · ".join(facts),
        f"{when}, {readable_age(last)} ago",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        ", ".join(f"{name} = {shorten(value, 60)}" for name, value in metadata.items()),
    )
    return [line for line in lines if line]
