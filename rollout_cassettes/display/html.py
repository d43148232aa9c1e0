"""Pieces of HTML for notebooks.

Nothing sets a text colour or a background of its own: what is shaded is shaded over the page's, so
that it can be read in dark themes and in light ones. There is no script, and no style sheet that
could reach other cells.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from rollout_cassettes.display.visible import visible

MONOSPACE = "font-family:var(--jp-code-font-family,monospace)"


def escaped(text: str) -> str:
    """Return text as HTML that shows it."""
    return html.escape(visible(text))


def element(tag: str, content: str, style: str = "", *, title: str = "") -> str:
    """Return an element.

    Args:
        tag: Its name.
        content: What is in it, as HTML.
        style: Its style.
        title: Shown when the pointer rests on it.
    """
    attributes = {"style": style, "title": title}
    written = "".join(f' {n}="{html.escape(v)}"' for n, v in attributes.items() if v)
    return f"<{tag}{written}>{content}</{tag}>"


def folded(summary: str, content: str, *, is_open: bool = False) -> str:
    """Return what can be unfolded."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escaped(summary)}</summary>{content}</details>"


def lines(text: str) -> str:
    """Return lines as they are, in a monospaced font."""
    return element("pre", escaped(text), "white-space:pre-wrap;margin:4px 0;background:none")


def titled(told: Sequence[str]) -> str:
    """Return a title, and the lines below it."""
    title, *others = map(escaped, told)
    facts = "".join(element("div", line, "opacity:0.7") for line in others)
    return element("div", element("b", title)) + facts


def whole(*parts: str) -> str:
    """Return what a cell shows."""
    return element("div", "".join(parts), "line-height:1.4")
