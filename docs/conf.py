"""Makes a site of the documentation: `sphinx-build -M html . build -c docs -W`.

The pages are the Markdown files and the notebooks of the repository, as they are and where they are, so
that links between them hold on the site and on a code host alike. Nothing is fetched, neither here nor
by a reader's browser.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from sphinx.application import Sphinx

import rollout_cassettes

project = "rollout_cassettes"
release = rollout_cassettes.__version__
copyright = "The rollout_cassettes authors. Apache-2.0"  # noqa: A001 - Sphinx's name for it

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "CHANGELOG.md",
    "cassettes/README.md",
    "tests/peers/README.md",
]
exclude_patterns = [".*", "build", "dist", "rollout_cassettes", "**/__pycache__"]

NAVIGATION = {
    "Start": ["docs/first-ten-minutes", "docs/concepts", "docs/comparison"],
    "Frameworks": ["docs/verl", "docs/trl", "docs/how-to/your-own-loop", "docs/adapters"],
    "How-to": [
        "docs/how-to/record-a-verl-run",
        "docs/how-to/tests-in-ci",
        "docs/how-to/debug-a-loss-spike",
        "docs/how-to/replay-in-a-notebook",
        "docs/how-to/read-a-cassette",
        "docs/how-to/*",
    ],
    "Notebooks": [
        "docs/notebooks/first-look-at-a-cassette",
        "docs/notebooks/changing-the-loss",
        "docs/notebooks/*",
    ],
    "Reference": [
        "docs/cli",
        "docs/api",
        "docs/errors",
        "docs/format",
        "docs/reliability",
        "docs/*",
    ],
    "Repository": ["CHANGELOG", "docs/decisions/README", "*"],
}
"""The pages by the part of the sidebar in which they are; a page is where the first pattern fits."""

BELOW = {"docs/decisions/README": "docs/decisions/0*"}
"""Pages that the sidebar shows below another one."""

extensions = ["myst_nb", "sphinx_copybutton"]
myst_heading_anchors = 4  # made as code hosts make them
nb_execution_mode = "off"  # tests/docs/test_notebooks.py executes them
nb_render_text_lexer = "text"
copybutton_selector = "div:not(.highlight-text, .output) > .highlight > pre"

pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = "rollout_cassettes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sphinx = False
templates_path = ["_templates"]
html_additional_pages = {"index": "start.html"}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#9a3412", "color-brand-content": "#c2410c"},
    "dark_css_variables": {"color-brand-primary": "#fb923c", "color-brand-content": "#fdba74"},
}


def add_navigation(app: Sphinx, docname: str, content: list[str]) -> None:
    """Append the sidebar's entries to their page: a code host would show them as code."""
    if docname in BELOW:
        content[0] += _entries(_fitting(app.env.found_docs, BELOW[docname]))
    if docname == root_doc:
        waiting = {page for page in app.env.found_docs if page != root_doc}
        for pattern in BELOW.values():
            waiting -= set(_fitting(waiting, pattern))
        for caption, patterns in NAVIGATION.items():
            chosen: list[str] = []
            for pattern in patterns:
                chosen += _fitting(waiting - set(chosen), pattern)
            waiting -= set(chosen)
            content[0] += _entries(chosen, f":caption: {caption}")


def _fitting(names: Iterable[str], pattern: str) -> list[str]:
    return sorted(name for name in names if PurePosixPath(name).match(pattern))


def _entries(names: list[str], option: str = "") -> str:
    listed = "\n".join(f"/{name}" for name in names)
    return f"\n```{{toctree}}\n:hidden:\n{option}\n\n{listed}\n```\n"


def setup(app: Sphinx) -> None:
    """Let Sphinx call this file's function."""
    app.connect("source-read", add_navigation)
