"""Fixtures of a user's project, for the tests of this directory."""

from tests.session.engines import (  # noqa: F401 - pytest finds them here
    counted,
    engine,
    generate,
    nothing_is_left,
    path,
    replay,
    tape,
    write_module,
)
