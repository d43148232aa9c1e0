"""The API page speaks of everything that is public."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import rollout_cassettes as rc
from tests.docs.blocks import Page

PAGE = Page.read(Path("docs/api.md"))
CODE = set(re.findall(r"[\w.]+", " ".join(re.findall(r"`([^`]+)`", PAGE.prose))))
SIGNATURES = {
    "record": rc.record,
    "replay": rc.replay,
    "use_cassette": rc.use_cassette,
    "open_cassette": rc.open_cassette,
    "adapters.function": rc.adapters.function,
    "testing.check_adapter": rc.testing.check_adapter,
    "register_codec": rc.register_codec,
    "shrink": rc.shrink,
    "verl_config.from_skip": rc.verl_config.from_skip,
}


def section(title):
    """Return the text under a heading, up to the next one of its level."""
    found = re.search(rf"^(#+) {re.escape(title)}$", PAGE.prose, re.MULTILINE)
    rest = PAGE.prose[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


@pytest.mark.parametrize("name", rc.__all__)
def test_every_public_name_is_on_the_page(name):
    """In code, so that it is a name and not a word."""
    assert name in CODE


@pytest.mark.parametrize("name", rc.adapters.__all__)
def test_every_public_name_of_adapters_is_on_the_page(name):
    """With the module that it is in."""
    assert f"adapters.{name}" in CODE or f"### adapters.{name}" in PAGE.prose


@pytest.mark.parametrize("name", [*rc.testing.__all__, *rc.testing.CHECKS])
def test_every_public_name_of_testing_is_on_the_page(name):
    """Checks among them, each with its promise."""
    text = section("testing")
    assert f"testing.{name}" in text or f"\n| `{name}` |" in text


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_parameter_is_explained(name):
    """In the section of its function."""
    text = section(name)
    for parameter in inspect.signature(SIGNATURES[name]).parameters:
        assert f"`{parameter}`" in text, f"{name}({parameter}=)"


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_signature_is_shown(name):
    """The blocks themselves are compared by the runner of blocks."""
    assert any(block.note("signature of") == name for block in PAGE.blocks)


@pytest.mark.parametrize(
    "cls",
    [rc.Summary, rc.Manifest, rc.Omitted, rc.Shrunk, rc.Trajectory],
    ids=lambda cls: cls.__name__,
)
def test_every_field_is_explained(cls):
    """In the section of its class."""
    text = section(cls.__name__)
    for field in fields(cls):
        assert f"`{field.name}`" in text, f"{cls.__name__}.{field.name}"


@pytest.mark.parametrize(
    "cls", [rc.Session, rc.Cassette, rc.Interaction, rc.Trajectory], ids=lambda cls: cls.__name__
)
def test_every_public_attribute_is_explained(cls):
    """Properties and methods, apart from what only the library itself calls."""
    internal = {"handle", "pass_over", "why_unasked"}
    text = section(cls.__name__)
    public = {name for name in vars(cls) if not name.startswith("_")} - internal
    for name in public:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text), f"{cls.__name__}.{name}"


@pytest.mark.parametrize(
    "cls",
    [
        error
        for error in vars(rc).values()
        if inspect.isclass(error) and issubclass(error, rc.CassetteError)
    ],
    ids=lambda cls: cls.__name__,
)
def test_every_error_has_an_entry_with_its_attributes(cls):
    """In the table of the API; on the page of errors with its message, why, and what to do."""
    row = next(
        line for line in section("Errors").splitlines() if line.startswith(f"| `{cls.__name__}`")
    )
    for attribute in inspect.get_annotations(cls):
        assert f"`{attribute}`" in row
    page = Page.read(Path("docs/errors.md")).text
    assert f"\n| [{cls.__name__}](#{cls.__name__.lower()}) | " in page
    entry = page.partition(f"\n## {cls.__name__}\n")[2].partition("\n## ")[0]
    assert f"except rc.{cls.__name__} as error" in entry or f".{cls.__name__}: " in entry
    for part in ("```text\n", "\n**Why.** ", "**What to do.** "):
        assert part in entry
