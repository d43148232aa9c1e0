"""verl's own SkipManager, without traces."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock


@contextmanager
def kept_apart():
    """Give SkipManager, whose state is the class's own, and put that back at the end."""
    from verl.utils.skip import SkipManager

    with mock.patch.multiple(SkipManager, config=None, step=-1, skip_instances={}):
        yield SkipManager


def skipping(role, dump_dir, steps=(1, 2, 3), action="cache"):
    """Give the overrides that make SkipManager dump, and load what was dumped."""
    return (
        f"skip.{role}.enable=True",
        f"skip.{role}.dump_dir={dump_dir}",
        f"skip.{role}.steps={list(steps)}",
        f"skip.{role}.action={action}",
    )
