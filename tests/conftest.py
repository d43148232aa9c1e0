"""The order in which files of tests are run: the long ones first, so that no process waits for one at the end."""

from __future__ import annotations


def pytest_configure(config):
    """Let xdist keep our order; its own puts files of many tests first, and the long ones have few."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Put the files first that have whole runs in them."""
    long = {
        item.path
        for item in items
        if item.get_closest_marker("slow") or item.get_closest_marker("ray")
    }
    items.sort(key=lambda item: item.path not in long)
