"""The session that records a cassette anew."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.session.faults import not_writable
from rollout_cassettes.session.recorder import Recorder
from rollout_cassettes.session.session import logger
from rollout_cassettes.session.steps import Steps
from rollout_cassettes.session.tape import Tape


class Rewriter(Recorder):
    """Records beside a cassette, and takes its place if the block ends well.

    The old cassette stays as it is where the block ends in an exception, and where nothing was
    recorded, or not all of it. Made by :class:`use_cassette`.
    """

    def __init__(
        self, path: Path, steps: Steps, adapters: list[Adapter] | None, **options: Any
    ) -> None:
        super().__init__(path, steps, adapters, **options)
        self._target = path.resolve()  # a link stays, and what it points to is replaced
        name = f".{self._target.name}.rewrite-{secrets.token_hex(4)}"
        self._directory = self._target.with_name(name)
        self._claim: Tape | None = None

    def _open(self) -> None:
        if self._target.exists():  # nobody else is to write what will be replaced
            self._claim = Tape(self._target, None, strict=self._strict, metadata={})
        super()._open()

    def _close(self) -> None:
        super()._close()
        try:
            if self._is_whole() and not self._failed:
                self._swap()
            elif self._directory.exists():
                logger.warning("%s stays as it was: the new recording is not whole", self._target)
        except OSError as error:
            if self._strict:
                raise not_writable(self._target, None, error) from error
            logger.warning("%s stays as it was: %s", self._target, error)
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)
            if self._claim is not None:
                self._claim.close()

    def _is_whole(self) -> bool:
        summary = self.summary()
        return bool(summary.recorded) and not (summary.faults or summary.omissions)

    def _swap(self) -> None:
        """Let the new cassette take the old one's place."""
        if not self._target.exists():
            self._directory.rename(self._target)
            return
        old = self._target.with_name(f".{self._target.name}.old-{secrets.token_hex(4)}")
        self._target.rename(old)
        try:
            self._directory.rename(self._target)
        except OSError:
            old.rename(self._target)
            raise
        shutil.rmtree(old, ignore_errors=True)
