"""Fitting recorded rows to another number of prompts, whole groups at a time.

In the batches of TRL, SkyRL and OpenRLHF the rows of a prompt follow each other, as many for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rollout_cassettes.cassette.tree.codec import KIND
from rollout_cassettes.cassette.tree.picking import Picker
from rollout_cassettes.errors import CassetteError


class Groups(NamedTuple):
    """The rows that one process generates for.

    Attributes:
        rows: How many there are.
        size: How many of them share a prompt.
    """

    rows: int
    size: int

    @classmethod
    def of(cls, rows: int, num_generations: int) -> Groups:
        """Return the groups of so many rows; a group may be spread over several processes."""
        return cls(rows, math.gcd(rows, num_generations))

    def fitted(self, live: Groups) -> list[int]:
        """Return the recorded row for each live row.

        Where there are more groups than were recorded, they are gone through again; where there
        are fewer, the last are left out. The same goes for the rows of a group.

        Args:
            live: The rows that are asked for.

        Raises:
            CassetteError: If there are some, and none were recorded.
        """
        if live.rows and not self.rows:
            raise CassetteError(
                f"Nothing was recorded that could be repeated: {live.rows} rows are asked for, and the "
                "recording has none.",
                fixes=["Leave the step out: replay(steps=...).", "Record it again, with rows."],
            )
        count = self.rows // self.size
        return [
            (row // live.size % count) * self.size + row % live.size % self.size
            for row in range(live.rows)
        ]


def select(value: Any, rows: Sequence[int], count: int) -> Any:
    """Return these rows of all that has one value for each recorded row.

    Args:
        value: A tuple or dict of columns, or a column: a list, or a tensor ``[count, ...]``.
            Anything else is returned as it is.
        rows: The recorded rows to return.
        count: How many rows were recorded.
    """
    import torch  # noqa: PLC0415 - this module is imported where torch may not be

    if isinstance(value, tuple):
        return tuple(select(each, rows, count) for each in value)
    if isinstance(value, dict):
        return {name: select(each, rows, count) for name, each in value.items()}
    if isinstance(value, list) and len(value) == count:
        return [value[row] for row in rows]
    if isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == count:
        return value[list(rows)]
    return value


def picked(node: Any, rows: Sequence[int], count: int, picker: Picker) -> Any:
    """Do the same as :func:`select` to a skeleton."""
    if isinstance(node, dict) and KIND not in node:
        return {name: picked(item, rows, count, picker) for name, item in node.items()}
    if isinstance(node, dict) and node[KIND] == "tuple":
        return {**node, "items": [picked(item, rows, count, picker) for item in node["items"]]}
    return picker.rows(node, rows) if picker.length(node) == count else node
