"""Numbers for calls: reserved when a call starts, given back if it fails."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class _Series:
    next: int
    freed: set[int] = field(default_factory=set)


class Numbering:
    """Numbers that are given out in order, one series for each key; threads share it.

    Args:
        first: Where each series starts.
    """

    def __init__(self, first: int = 0) -> None:
        self._series: defaultdict[Hashable, _Series] = defaultdict(lambda: _Series(first))
        self._lock = threading.Lock()

    def next(self, key: Hashable) -> int:
        """Return the number that would be given out next, without reserving it."""
        with self._lock:
            return self._series[key].next

    @contextmanager
    def reserved(self, key: Hashable) -> Iterator[int]:
        """Reserve the next number, for good unless the block fails.

        A number is given back only as long as no later one is in use: otherwise the calls that
        have those would no longer be numbered in the order in which they started.
        """
        with self._lock:
            series = self._series[key]
            number, series.next = series.next, series.next + 1
        try:
            yield number
        except BaseException:
            with self._lock:
                series.freed.add(number)
                while series.next - 1 in series.freed:
                    series.next -= 1
                    series.freed.remove(series.next)
            raise
