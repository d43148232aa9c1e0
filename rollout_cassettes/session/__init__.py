"""Sessions: the with-blocks, which steps they cover, and what they do about misses."""

from rollout_cassettes.session.player import Player, replay
from rollout_cassettes.session.recorder import Recorder, record
from rollout_cassettes.session.session import Session
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.use import use_cassette

__all__ = ["Player", "Recorder", "Session", "Summary", "record", "replay", "use_cassette"]
