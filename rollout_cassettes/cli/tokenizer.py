"""Tokenizers from a directory, to show tokens as text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.trajectories.frames import needed

Decode = Callable[[list[int]], str]

TokenizerPath = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer",
        metavar="DIR",
        help="Show tokens as text: the directory of a tokenizer, in the Hugging Face layout.",
        show_default=False,
    ),
]


def decoder(directory: Path) -> Decode:
    """Return what decodes token ids; special tokens are shown.

    A ``tokenizer.json`` needs the package tokenizers alone; other tokenizers need transformers. No
    code from the directory is run, and nothing is downloaded.

    Raises:
        CassetteError: If there is no tokenizer, or the package is missing.
    """
    if not directory.is_dir():
        raise _none_in(directory, "there is no such directory")
    file = directory / "tokenizer.json"
    library = needed("tokenizers" if file.exists() else "transformers")
    try:
        if file.exists():
            fast = library.Tokenizer.from_file(str(file))
            return _remembering(lambda ids: str(fast.decode(ids, skip_special_tokens=False)))
        slow = library.AutoTokenizer.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # these libraries raise whatever comes up
        raise _none_in(directory, str(error)) from error
    return _remembering(lambda ids: str(slow.decode(ids)))


def _remembering(decode: Decode) -> Decode:
    """Remember the text of single tokens: millions of them are asked for, one by one."""
    single = functools.cache(lambda token: decode([token]))
    return lambda ids: single(ids[0]) if len(ids) == 1 else decode(ids)


def _none_in(directory: Path, why: str) -> CassetteError:
    return CassetteError(
        f"No tokenizer can be read from {directory}: {why}.",
        fixes=["Name the directory that holds its tokenizer.json, such as the model's."],
    )
