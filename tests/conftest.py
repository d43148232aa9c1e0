"""What holds for all tests: their order, their environment, and patience with a busy machine.

Files with long tests are run first, so that no process waits for one at the end.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LONG = ("slow", "ray", "verl")
"""The marks of tests that take long, the longest first."""

PATIENCE = {
    "RAY_raylet_start_wait_time_s": "600",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_agent_register_timeout_ms": "600000",
    "TQ_STORAGE_HANDSHAKE_TIMEOUT": "600",
    "TQ_DATA_UPDATE_RESPONSE_TIMEOUT": "600",
}
"""How long Ray's processes may take to start, and TransferQueue's to answer: else it is 30 seconds, or a minute."""

SHAPES_OUTPUT = (
    *("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR", "PY_COLORS"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)
"""Environment variables that change what rich, typer and pytest print; tests look at what they print."""

settings.register_profile(
    "tests",
    deadline=None,  # the first example may import torch
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tests")


def pytest_configure(config):
    """Set the environment; let xdist keep our order: its own puts files of many tests first, and the long ones have few."""
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    for name in SHAPES_OUTPUT:
        os.environ.pop(name, None)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Put the files first that have whole runs in them, and then those that train with verl."""
    turn = {}
    for item in items:
        turns = [number for number, mark in enumerate(LONG) if item.get_closest_marker(mark)]
        turn[item.path] = min([turn.get(item.path, len(LONG)), *turns])
    items.sort(key=lambda item: turn[item.path])
