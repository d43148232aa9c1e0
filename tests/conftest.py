"""The order in which files of tests are run: the long ones first, so that no process waits for one at the end."""

from __future__ import annotations

LONG = ("slow", "ray", "verl")
"""The marks of tests that take long, the longest first."""


def pytest_configure(config):
    """Let xdist keep our order; its own puts files of many tests first, and the long ones have few."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Put the files first that have whole runs in them, and then those that train with verl."""
    turn = {}
    for item in items:
        turns = [number for number, mark in enumerate(LONG) if item.get_closest_marker(mark)]
        turn[item.path] = min([turn.get(item.path, len(LONG)), *turns])
    items.sort(key=lambda item: turn[item.path])
