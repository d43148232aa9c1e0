"""One interaction of a cassette that is shrunk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons
from rollout_cassettes.cassette import Interaction, Key, Manifest
from rollout_cassettes.cassette.packed import Packed
from rollout_cassettes.cassette.safetensors_file import RawTensor
from rollout_cassettes.cassette.tensors import encode_raw, entry_of
from rollout_cassettes.cassette.tree.codec import KIND
from rollout_cassettes.cassette.tree.picking import Picker
from rollout_cassettes.errors import CassetteError

COMPRESSION = "zstd"


class Piece(NamedTuple):
    """What is written of an interaction.

    Attributes:
        manifest: Its manifest.
        data: The bytes of its tensors file.
        tensors: The tensors in that file, by name.
    """

    manifest: Manifest
    data: bytes
    tensors: dict[str, RawTensor]

    @property
    def nbytes(self) -> int:
        """What it takes on the disk, both files, in bytes."""
        return len(self.manifest.to_bytes()) + len(self.data)


@dataclass(frozen=True)
class Part:
    """One interaction, and what there is in it to choose from.

    Attributes:
        directory: The cassette's directory.
        key: The interaction's place in it.
        adapter: What knows its layout.
        groups: Its prompts; none where it has no rows, or they can't be told apart.
        fields: The names of its response's fields.
        nbytes: Its size on the disk, in bytes.
        refusal: Why it can't be cut into rows; empty where it can.
    """

    directory: Path
    key: Key
    adapter: Adapter
    groups: list[Group]
    fields: list[str]
    nbytes: int
    refusal: str = ""

    @classmethod
    def of(cls, directory: Path, key: Key, adapter: Adapter) -> Part:
        """Look at an interaction.

        Raises:
            CassetteCorruptError: If it is damaged.
        """
        interaction = Interaction(directory, key)
        interaction.verify()
        recorded, groups, refusal = _skeletons(interaction), list[Group](), ""
        try:
            groups = adapter.groups(recorded)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            refusal = _why(error)
        try:
            fields = adapter.fields(recorded)
        except (TypeError, LookupError, AttributeError):  # it is laid out otherwise
            fields = []
        return cls(directory, key, adapter, groups, fields, interaction.nbytes, refusal)

    def require_rows(self) -> None:
        """Refuse to cut what has no rows.

        Raises:
            CassetteError: If it can't be cut into rows, saying why.
        """
        if self.refusal:
            raise self._uncut(self.refusal)

    def piece(
        self, groups: Sequence[Group] | None, elsewhere: Collection[str], dropped: Collection[str]
    ) -> Piece:
        """Return what is written of it.

        Args:
            groups: The prompts that are kept; None for all of it.
            elsewhere: The uids of prompts that are kept in other interactions.
            dropped: The fields that are not kept.

        Raises:
            CassetteError: If it can't be cut.
        """
        interaction = Interaction(self.directory, self.key)
        manifest, skeletons = interaction.manifest, interaction.skeletons
        recorded = _skeletons(interaction)
        cut = Excerpt(recorded.request, recorded.response)
        try:
            if groups is not None and self.groups:
                cut = self.adapter.excerpt(recorded, groups, elsewhere)
                skeletons = {name: tree for name, tree in skeletons.items() if name != "polls"}
            own = set(self.fields) & {*dropped}
            if own:
                response = self.adapter.without(recorded._replace(response=cut.response), own)
                cut = cut._replace(response=response)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise self._uncut(_why(error)) from error
        kept = {**skeletons, "request": cut.request, "response": cut.response}
        trees, tensors = recorded.picker.settled(kept)
        return _piece(manifest, trees, tensors, cut.asked)

    def _uncut(self, why: str) -> CassetteError:
        return CassetteError(
            f"{str(self.key).capitalize()} of {self.directory} can't be cut into rows: {why}.",
            fixes=[
                "Choose steps and fields alone, without rows.",
                "Give the adapter that knows its rows: shrink(..., adapters=[...]).",
            ],
        )


def _piece(
    manifest: Manifest,
    trees: dict[str, Any],
    tensors: dict[str, RawTensor],
    asked: list[int] | None,
) -> Piece:
    data, raw_size = encode_raw(tensors, COMPRESSION)
    marks = manifest.fingerprint
    written = replace(
        manifest,
        tensors=entry_of(manifest.key.stem, data, raw_size, COMPRESSION),
        trees=Packed.pack(trees, COMPRESSION),
        fingerprint=marks if marks is None or asked is None else [marks[row] for row in asked],
        omissions=manifest.omissions if any(_omitted(trees)) else [],
    )
    return Piece(written, data, tensors)


def _skeletons(interaction: Interaction) -> Skeletons:
    trees = interaction.skeletons
    picker = Picker(interaction.tensors, interaction.path)
    marks = interaction.manifest.fingerprint
    return Skeletons(trees["request"], trees["response"], marks, picker)


def _omitted(node: Any) -> Iterator[bool]:
    """Find the places of values that could not be stored."""
    if isinstance(node, dict):
        if node.get(KIND) == "omitted":
            yield True
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _omitted(item)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else f"it is laid out otherwise ({error!r})"
