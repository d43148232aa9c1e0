"""Interactions on disk, made without a session."""

from __future__ import annotations

from contextlib import closing

from rollout_cassettes.cassette import Interaction, Key, Manifest, tree
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.writer import Writer


def write(writer, key, response=None, request=None, **entries):
    """Write an interaction; ``entries`` go into its manifest."""
    parts = {
        "request": tree.split(request, "request"),
        "response": tree.split(response, "response"),
        "random_state": tree.split({}, "random_state"),
    }
    skeletons = {name: part.skeleton for name, part in parts.items()}
    tensors = {path: data for part in parts.values() for path, data in part.tensors.items()}
    omissions = [omission for part in parts.values() for omission in part.omissions]

    def manifest(file):
        return Manifest(
            **{
                "step": key.step,
                "step_kind": "call",
                "phase": key.phase,
                "index": key.index,
                "rank": key.rank,
                "adapter": "function",
                "entry_point": "engine:Engine.generate",
                "versions": {"python": "3.11.7", "rollout_cassettes": "0.1.0"},
                "tensors": file,
                "trees": Packed.pack(skeletons, writer.compression),
                "fingerprint": None,
                "omissions": omissions,
                "recorded_at": "2026-01-02T03:04:05.678+00:00",
                "host": "somewhere",
                "seconds": 1.5,
                **entries,
            }
        )

    return writer.write(key, tensors, manifest)


def record(path, response=None, request=None, *, step=1, compression="zstd", **entries):
    """Record one interaction and return it, unread."""
    key = Key(step)
    with closing(Writer(path, compression)) as writer:
        write(writer, key, response, request, **entries)
    return Interaction(path, key)
