"""How sessions show themselves in notebooks."""

from __future__ import annotations

from rollout_cassettes.display.html import element, escaped, titled, whole
from rollout_cassettes.errors import spans
from rollout_cassettes.session.summary import Summary

_STEPS = {
    "played": "replayed",
    "generated": "generated live",
    "recorded": "recorded",
    "missing": "missing",
    "unplayed": "not asked for",
}


def bundle(path: str, sentence: str, summary: Summary) -> dict[str, str]:
    """Show what a session did: a sentence, and the steps that it is about.

    Args:
        path: The cassette's directory.
        sentence: What it did, in words.
        summary: The same in figures.
    """
    steps = {text: getattr(summary, name) for name, text in _STEPS.items()}
    rows = [(text, spans(found)) for text, found in steps.items() if found]
    cells = "".join(
        element("tr", "".join(element("td", escaped(cell), "text-align:left") for cell in row))
        for row in rows
    )
    return {
        "text/plain": "\n".join([path, sentence, *(f"  {t}: steps {found}" for t, found in rows)]),
        "text/html": whole(titled([path, sentence]), element("table", cells)),
    }
