"""Whatever a cassette can hold can be looked at."""

from __future__ import annotations

import json

from hypothesis import given, settings

from rollout_cassettes.cassette.comparison import first_difference
from rollout_cassettes.cassette.text import _lines
from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.plain import as_text
from rollout_cassettes.trajectories import Statistics, read
from rollout_cassettes.trajectories.html import trajectory_html
from rollout_cassettes.trajectories.records import columns, plain, record, viewed
from rollout_cassettes.trajectories.view import trajectory_view
from tests import strategies
from tests.cassette import round_trip

CONTROLS = {chr(code) for code in [*range(32), *range(127, 160)]} - {"\n", "\t"}


anything = strategies.batches | strategies.trees


@settings(max_examples=40)
@given(anything)
def test_it_has_an_outline_and_lines_of_text(value):
    """One line each, without a character that moves a cursor."""
    skeleton, _ = round_trip.stored(value, strict=False)
    read_back = round_trip.plain(value, strict=False)
    for line in [*outline(read_back), *_lines("response", skeleton, 0)]:
        assert not CONTROLS & set(line)
        line.encode()


@settings(max_examples=40)
@given(anything)
def test_it_is_equal_to_itself(value):
    assert first_difference(*(round_trip.plain(value, strict=False) for _ in range(2)), "x") is None


@settings(max_examples=40)
@given(anything, anything)
def test_its_rows_can_be_shown_and_exported(request, value):
    """As views, as records, as columns, as figures; nearly always there are none."""
    for name in ("responses", "score"):
        columns_of_it = {name: [value, "text"], "prompts": [request, [1]], "other": [value, 1]}
        asked, answered = (round_trip.plain(v, strict=False) for v in (request, columns_of_it))
        rows = [*read(asked, answered), *read(asked, round_trip.plain(value, strict=False))]
        for row in rows:
            as_text(trajectory_view(row)).encode()
            trajectory_html(row).encode()
            json.dumps([record(row), viewed(row)], allow_nan=False)
        assert Statistics.of(rows).rows == len(rows)
        json.dumps(plain(columns(rows)), allow_nan=False)
