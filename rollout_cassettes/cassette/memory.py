"""How much memory a file may claim to need."""

from __future__ import annotations

import os


def refuse_more_than_memory(size: int) -> None:
    """Refuse a claimed size before memory is taken for it.

    Raises:
        ValueError: If it is more than this machine has, or no size at all.
    """
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not 0 <= size <= available:
        raise ValueError(f"it claims to hold {size} bytes; this machine has {available}")
