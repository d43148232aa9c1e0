"""Whole batches: everything that a cassette carries, nested in everything that nests."""

from __future__ import annotations

from hypothesis import given, settings

from tests import strategies
from tests.cassette.round_trip import plain, round_trip
from tests.cassette.sameness import assert_same


@settings(max_examples=150)
@given(strategies.batches)
def test_a_batch_comes_back_the_same(batch):
    """Bit by bit, dtype by dtype, container by container."""
    assert_same(batch, round_trip(batch))


@settings(max_examples=60)
@given(strategies.batches)
def test_a_batch_can_be_read_without_its_libraries(batch):
    plain(batch)
