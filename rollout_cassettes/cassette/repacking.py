"""Compressing the files of a cassette, and decompressing them: not a bit of what they hold changes."""

from __future__ import annotations

from dataclasses import replace

from rollout_cassettes.cassette import tensors
from rollout_cassettes.cassette.interaction import Interaction
from rollout_cassettes.cassette.writer import Writer


def repack(interaction: Interaction, writer: Writer) -> bool:
    """Write an interaction as the writer compresses; return whether that changed anything.

    Args:
        interaction: The interaction.
        writer: The writer of its cassette.

    Raises:
        CassetteCorruptError: If a file is damaged: it then stays as it is.
        OSError: If the disk is full or the directory can't be written to.
    """
    manifest = interaction.manifest
    if manifest.tensors.compression == writer.compression:
        return False
    interaction.verify()
    path = interaction.path.with_name(manifest.tensors.file)
    raw = tensors.decompressed(path, manifest.tensors)
    data = tensors.compressed(raw) if writer.compression else raw
    entry = tensors.entry_of(interaction.key.stem, data, len(raw), writer.compression)
    trees = manifest.trees.repacked(writer.compression)
    writer.exchange(replace(manifest, tensors=entry, trees=trees), data)
    return True
