"""What a replay sees of how its responses are read: which of their fields."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.adapters.reading import refuse
from rollout_cassettes.cassette.reads import store_reads
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.session.session import logger


class Reads:
    """Takes note of the fields that are read of what a replay hands out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: defaultdict[str, set[str]] = defaultdict(set)

    @staticmethod
    def require_observed(*adapters: Adapter) -> None:
        """Refuse adapters whose reads can't be observed.

        Raises:
            CassetteError: If there is one, saying why.
        """
        for adapter in adapters:
            if adapter.unobserved:
                refuse(adapter.name, adapter.unobserved)

    def watched(self, adapter: Adapter, result: Any) -> Any:
        """Return what a call is to return, such that its reads are seen.

        Raises:
            CassetteError: If they can't be observed.
        """
        self.require_observed(adapter)
        with self._lock:
            seen = self._seen[adapter.name]
        return adapter.watched(result, seen.update)

    def by_adapter(self) -> dict[str, list[str]]:
        """Return the fields that were read so far, by adapter."""
        with self._lock:
            return {adapter: sorted(names) for adapter, names in self._seen.items()}

    def store(self, path: Path) -> None:
        """Keep what was read where a cassette is shrunk from; a replay needs no writable one."""
        reads = self.by_adapter()
        if not reads:
            return
        try:
            store_reads(path, reads)
        except (CassetteError, OSError) as error:
            logger.warning("what was read is in session.reads alone: %s", error)
