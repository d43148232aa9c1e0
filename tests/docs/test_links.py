"""Every link between pages leads to a page, and to a heading on it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs.blocks import ROOT, Page, pages

PAGES = {page.path: page for page in pages()}

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"#{1,6} +(.+)")
_HOSTS = ("https://semver.org", "https://github.com/huggingface/safetensors")


def links(page):
    """Return the targets of a page's links, code left out."""
    return _LINK.findall(re.sub(r"`[^`]*`", "", page.prose))


def anchors(page):
    """Return the anchors of a page's headings, made as GitHub makes them."""
    seen, made = Counter(), set()
    for line in page.prose.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading is None:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        made.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return made


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: str(page.path))
def test_links_lead_somewhere(page):
    """To a file of the repository and, where they name one, a heading in it."""
    for link in links(page):
        if link.startswith("https://"):
            assert link.startswith(_HOSTS), (
                f"{page.path} links to {link}: is that a host to rely on?"
            )
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page.path.parent / name).resolve() if name else ROOT / page.path
        assert target.exists(), f"{page.path} links to {link}, which is not there"
        if anchor:
            linked = Page.read(target.relative_to(ROOT.resolve()) if name else page.path)
            assert anchor in anchors(linked), f"{page.path} links to {link}: no such heading"


def test_the_tests_that_prove_a_claim_exist():
    """`test_file.py::test_name` in a page is a test of this repository."""
    written = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    named = [
        found
        for page in PAGES.values()
        for found in re.findall(r"`(test_\w+\.py)::(test_\w+)`", page.prose)
    ]
    assert named
    for file, test in named:
        assert f"def {test}(" in written[file], f"{file} has no {test}"


def test_every_page_can_be_reached_from_the_readme():
    """By following links."""
    reached, waiting = set(), [next(page for page in PAGES if page.name == "README.md")]
    while waiting:
        path = waiting.pop()
        if path in reached or path not in PAGES:
            continue
        reached.add(path)
        for link in links(PAGES[path]):
            target = (ROOT / path.parent / link.partition("#")[0]).resolve()
            if target.is_relative_to(ROOT.resolve()):
                waiting.append(target.relative_to(ROOT.resolve()))
    assert reached == set(PAGES)


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: str(page.path))
def test_tables_are_whole(page):
    """Each row has as many cells as the table's head."""
    cells = None
    for line in page.prose.splitlines():
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.sub(r"`[^`]*`|\\\|", "", line).strip("|").split("|"))
        assert cells in (None, found), f"{page.path}: {line}"
        cells = found


def test_anchors_are_made_as_github_makes_them():
    """Lower case, punctuation gone, spaces to dashes, repetitions numbered."""
    text = (
        "# Compared with verl's SkipManager\n## adapters.function\n## A\n## A\n```text\n# no\n```\n"
    )
    page = Page(ROOT, text, [])
    assert {"compared-with-verls-skipmanager", "adaptersfunction", "a", "a-1"} <= anchors(page)
