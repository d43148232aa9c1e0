"""The cassette that is committed: replayed with no engine, and read with no framework."""

from __future__ import annotations

from pathlib import Path

import pytest

import rollout_cassettes as rc
from tests.verl.comparison import uids

pytestmark = pytest.mark.verl

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "cassettes" / "demo"

MOST_BYTES = 200_000


def test_the_demo_is_replayed_without_an_engine(train):
    """The real trainer takes the three steps from it, and asks the LLM for nothing."""
    from rollout_cassettes.demo.showcase import OVERRIDES

    with rc.replay(path=DEMO, on_unplayed="error") as session:
        run = train(steps=3, overrides=OVERRIDES)
    assert session.played == [1, 2, 3]
    assert run.requests == (0, 0)
    assert run.queue_left == {}
    for interaction, batch in zip(rc.open_cassette(DEMO), run.actor_batches, strict=True):
        recorded = interaction.response["data"]["responses"].unbind()
        assert [row.tolist() for row in batch.fields["responses"]] == [
            row.tolist() for row in recorded
        ]
        assert len(uids(batch)) == 4


def test_two_replays_of_the_demo_are_equal(train):
    """A deterministic test of a training, without an engine: what committed cassettes are for."""
    from rollout_cassettes.demo.showcase import OVERRIDES
    from tests.verl.comparison import assert_equal_trainings

    with rc.replay(path=DEMO):
        first = train(steps=3, overrides=OVERRIDES)
    with rc.replay(path=DEMO):
        second = train(steps=3, overrides=OVERRIDES)
    assert_equal_trainings(first, second)


def test_committed_cassettes_are_whole_and_small():
    """Each file verifies, and all of them together are small enough for git."""
    cassettes = {manifest.parent for manifest in (ROOT / "cassettes").rglob("step-*.msgpack")}
    committed = {path for path in cassettes if "demo-latest" not in path.parts}
    assert DEMO in committed
    for path in committed:
        for interaction in rc.open_cassette(path).interactions():
            interaction.verify()
    files = [file for path in committed for file in path.iterdir()]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
