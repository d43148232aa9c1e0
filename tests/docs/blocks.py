"""Finds the fenced blocks of the documentation, and the notes in the comments before them.

A note is an HTML comment, on lines of its own, directly before a block:

    <!-- tests -->                       names the block, for scripts (.ci/run runs this one)
    <!-- file: tests/test_loss.py -->    the block is written to a file, instead of being run
    <!-- setup: verl_trainer -->         names of tests/docs/setups.py are there for this block
    <!-- signature of record -->         the block is compared with a signature, instead of run
    <!-- run by PATH::test_name -->      another test runs the block
    <!-- run by .ci/run -->              .ci/run runs the block's commands
    <!-- amounts vary -->                output: durations, sizes and decimal fractions may differ
    <!-- illustration -->                text that nothing prints

Anywhere on a page, `<!-- needs verl -->` says what its blocks import, and
`<!-- page run by PATH::test_name -->` that another test runs all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>.*)")
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        line: The line of its opening fence, counted from 1.
        language: What stands behind the fence.
        text: What is in it, without the fences and their indentation.
        notes: The comments directly before it.
    """

    line: int
    language: str
    text: str
    notes: tuple[str, ...]

    def note(self, start: str) -> str | None:
        """Return the rest of the note that starts with these words; None if there is none."""
        for note in self.notes:
            if note == start or note.startswith(f"{start} "):
                return note.removeprefix(start).strip()
        return None


@dataclass(frozen=True)
class Page:
    """One Markdown file.

    Attributes:
        path: Where it is, relative to the repository.
        text: Its source.
        blocks: Its fenced blocks, in order.
    """

    path: Path
    text: str
    blocks: list[Block] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Page:
        """Read a page, given its path in the repository."""
        text = (ROOT / path).read_text(encoding="utf-8")
        return cls(path, text, list(_blocks(text.splitlines())))

    @property
    def needs(self) -> set[str]:
        """The packages that its blocks import, besides the core's."""
        comments = _COMMENT.findall(self.prose)
        return {note.removeprefix("needs ") for note in comments if note.startswith("needs ")}

    @property
    def run_by(self) -> str | None:
        """The test that runs the page's blocks, where that is another one."""
        comments = _COMMENT.findall(self.prose)
        tests = [
            note.removeprefix("page run by ")
            for note in comments
            if note.startswith("page run by ")
        ]
        return tests[0] if tests else None

    @property
    def prose(self) -> str:
        """The page without its blocks; their lines are left empty."""
        lines = self.text.splitlines()
        for block in self.blocks:
            end = block.line + len(block.text.splitlines()) + 1
            lines[block.line - 1 : end] = [""] * (end - block.line + 1)
        return "\n".join(lines)

    def named(self, name: str) -> Block:
        """Return the block with a name."""
        (block,) = (block for block in self.blocks if name in block.notes)
        return block


def pages() -> list[Page]:
    """Return all pages that users and contributors read."""
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    paths += [ROOT / "cassettes" / "README.md", ROOT / "tests" / "peers" / "README.md"]
    paths += sorted((ROOT / "docs").rglob("*.md"))
    return [Page.read(path.relative_to(ROOT)) for path in paths]


def _blocks(lines: list[str]) -> Iterator[Block]:
    number = 0
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None:
            number += 1
            continue
        end = _end_of(lines, number, fence["ticks"])
        indent = len(fence["indent"])
        text = "".join(f"{line[indent:]}\n" for line in lines[number + 1 : end])
        yield Block(number + 1, fence["language"].strip(), text, _notes_before(lines, number))
        number = end + 1


def _end_of(lines: list[str], start: int, ticks: str) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].strip() == ticks:
            return number
    raise ValueError(f"the block that starts in line {start + 1} has no end")


def _notes_before(lines: list[str], number: int) -> tuple[str, ...]:
    """Return the comments that end in the lines above; blank lines may stand between."""
    first = number
    while first and (not lines[first - 1].strip() or _COMMENT.fullmatch(lines[first - 1].strip())):
        first -= 1
    return tuple(_COMMENT.findall("\n".join(lines[first:number])))
