"""Spark lines: how a figure goes, in a line of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"


def sparkline(values: Sequence[float | None], width: int = 60) -> str:
    """Draw figures as blocks, from the smallest to the largest of them.

    Args:
        values: The figures; what is unknown or not finite is a dot.
        width: The most characters to take, where there are more figures: each stands for the mean
            of its neighbours.
    """
    figures = _means(values, width)
    known = [figure for figure in figures if figure is not None]
    if not known:
        return _UNKNOWN * len(figures)
    low, high = min(known), max(known)
    return "".join(_UNKNOWN if figure is None else _block(figure, low, high) for figure in figures)


def _block(figure: float, low: float, high: float) -> str:
    if high == low:
        return _BLOCKS[3]
    return _BLOCKS[round((figure / 2 - low / 2) / (high / 2 - low / 2) * (len(_BLOCKS) - 1))]


def _means(values: Sequence[float | None], width: int) -> list[float | None]:
    count = min(len(values), width)
    edges = [number * len(values) // count for number in range(count + 1)] if count else [0]
    return [_mean(values[start:end]) for start, end in pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(value / len(known) for value in known) if known else None
