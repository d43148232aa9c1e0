"""Fixtures of a user's project, for the tests of this directory."""

from __future__ import annotations

from tests.session.engines import (
    counted,
    engine,
    generate,
    nothing_is_left,
    path,
    write_module,
)

__all__ = ["counted", "engine", "generate", "nothing_is_left", "path", "write_module"]
