"""Cassettes on disk: bytes to values and back."""

from rollout_cassettes.cassette.cassette import Cassette, open_cassette
from rollout_cassettes.cassette.interaction import Interaction
from rollout_cassettes.cassette.key import Key
from rollout_cassettes.cassette.manifest import Manifest
from rollout_cassettes.cassette.tree import Omission, Omitted, register_codec

__all__ = [
    "Cassette",
    "Interaction",
    "Key",
    "Manifest",
    "Omission",
    "Omitted",
    "open_cassette",
    "register_codec",
]
