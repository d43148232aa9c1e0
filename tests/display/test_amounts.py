"""Amounts, as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rollout_cassettes.display.amounts import (
    readable_age,
    readable_bytes,
    readable_number,
    readable_seconds,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.349, "0.35 s"),
        (9.994, "9.99 s"),
        (9.996, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m 00 s"),
        (751, "12 m 31 s"),
        (3599.7, "1 h 00 m"),
        (11100, "3 h 05 m"),
        (360000, "100 h 00 m"),
    ],
)
def test_durations_are_written_as_people_do(seconds, text):
    assert readable_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (4_400_000, "4.4 MB"),
        (10**15, "1000.0 TB"),
    ],
)
def test_sizes_are_written_as_people_do(count, text):
    assert readable_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86_400 * 40, "40 d"), (1e8, "3 y")],
)
def test_ages_are_written_as_people_do(seconds, text):
    """A clock that runs behind makes nothing younger than now."""
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert readable_age((now - timedelta(seconds=seconds)).isoformat(), now) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "0"),
        (3, "3"),
        (1.40234375, "1.402"),
        (0.03125, "0.03125"),
        (812.46, "812.5"),
        (98765.4, "98,765"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_figures_have_four_digits(value, text):
    assert readable_number(value) == text
