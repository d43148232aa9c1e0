"""Amounts, written for people."""

from __future__ import annotations

import math
from datetime import datetime, timezone

_MINUTE = 60
_KILO = 1000
_UNITS = (("s", 1), ("min", 60), ("h", 3600), ("d", 86_400), ("y", 365 * 86_400))
_FIGURES = 4
_LARGE = 10**12


def readable_seconds(seconds: float) -> str:
    """Write a duration: ``0.35 s``, ``12 m 31 s``, ``3 h 05 m``."""
    if seconds < 9.995:  # noqa: PLR2004 - what would be rounded up to 10.00
        return f"{seconds:.2f} s"
    if round(seconds) < _MINUTE:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes:02d} m"


def readable_bytes(count: float) -> str:
    """Write a size in decimal units: ``812 B``, ``4.4 MB``."""
    if count < _KILO:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= _KILO
        if round(count, 1) < _KILO:
            return f"{count:.1f} {unit}"
    return f"{count / _KILO:.1f} TB"


def readable_age(recorded_at: str, now: datetime | None = None) -> str:
    """Write how long ago something was: ``12 s``, ``5 min``, ``3 h``, ``40 d``, ``2 y``.

    Args:
        recorded_at: When it was, ISO 8601.
        now: When it is; the clock's time by default.
    """
    then = datetime.fromisoformat(recorded_at)
    seconds = ((now or datetime.now(timezone.utc)) - then).total_seconds()
    unit, size = next((entry for entry in reversed(_UNITS) if seconds >= entry[1]), _UNITS[0])
    return f"{max(seconds, 0) / size:.0f} {unit}"


def readable_number(value: float | None) -> str:
    """Write a figure with four digits that count: ``1.402``, ``0.03125``, ``812.5``, ``1.200e-07``, ``3`` for an integer."""
    if value is None:
        return ""
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    if abs(value) >= 10**_FIGURES:
        return f"{value:,.0f}" if abs(value) < _LARGE else f"{value:.3e}"
    return f"{value:#.{_FIGURES}g}".rstrip(".") if value else "0"


def readable_count(value: int | None) -> str:
    """Write a count: ``982``, ``1,048,576``."""
    return "" if value is None else f"{value:,}"
