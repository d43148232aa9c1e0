"""The documentation makes a site: no warning, every page in the sidebar, nothing fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.docs.blocks import ROOT, pages
from tests.docs.notebooks import NOTEBOOKS

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("sphinx", "furo", "myst_nb", "sphinx_copybutton")),
    reason="needs the extra `docs`",
)
PAGES = {str(page.path.with_suffix("")) for page in pages()} - {"README"}
PAGES |= {str(path.relative_to(ROOT).with_suffix("")) for path in NOTEBOOKS}

_FETCHED = re.compile(
    r"""<(?:script|img|iframe|link\ rel="(?:stylesheet|preload|preconnect|icon)")
    [^>]*(?:src|href)="(?:https?:)?//|@import|url\(["']?(?:https?:)?//""",
    re.VERBOSE,
)


def build(source, target):
    """Make the site as the README says, warnings being errors; return what it printed."""
    command = [sys.executable, "-m", "sphinx", "-M", "html", ".", target, "-c", "docs", "-W", "-q"]
    return subprocess.run(
        command,
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once."""
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT, target)
    assert done.returncode == 0, done.stdout
    assert not done.stdout
    return target / "html"


def test_every_page_is_in_the_sidebar(site):
    """Of the first page, whichever way it came there: by name or by a pattern."""
    text = (site / "docs" / "index.html").read_text(encoding="utf-8")
    sidebar = text.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    linked = {(site / "docs" / name).resolve() for name in re.findall(r'href="([^"#]+)', sidebar)}
    wanted = {(site / f"{page}.html").resolve() for page in PAGES - {"docs/index"}}
    assert wanted <= linked
    assert all(path.is_file() for path in linked)


def test_links_between_pages_lead_to_files_of_the_site(site):
    """Also those that leave docs/, and those to notebooks."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'<a [^>]*href="([^"#?:]+)[#"]', text):
            target = page.parent / link
            assert target.is_file() or (target / "index.html").is_file(), f"{page.name}: {link}"


def test_a_reader_fetches_nothing(site):
    """No script, font, style or picture comes from elsewhere."""
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        found = _FETCHED.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.relative_to(site)}: {found}"


def test_notebooks_show_what_they_showed(site):
    """As tables, with the shades of tokens."""
    text = (site / "docs" / "notebooks" / "first-look-at-a-cassette.html").read_text("utf-8")
    assert "rgba(255,110,60" in text
    assert "  2  24  64  10" in text


def test_what_leads_nowhere_fails_the_build(tmp_path):
    """A link to a missing page, one to a missing heading, and a page that the sidebar lacks."""
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "docs" / name, source / "docs" / name)
    conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert conf.count('"CHANGELOG", "docs/decisions/README", "*"') == 1
    conf = conf.replace('"CHANGELOG", "docs/decisions/README", "*"', "")
    (source / "docs" / "conf.py").write_text(conf, encoding="utf-8")
    (source / "docs" / "concepts.md").write_text("# Concepts\n", encoding="utf-8")
    (source / "CHANGELOG.md").write_text("# Changelog\n", encoding="utf-8")
    (source / "docs" / "index.md").write_text(
        "# Title\n\n[gone](no-such-page.md) [gone](concepts.md#no-such-heading)\n", encoding="utf-8"
    )
    done = build(source, tmp_path)
    assert done.returncode != 0
    for named in ("no-such-page.md", "no-such-heading", "CHANGELOG.md"):
        assert named in done.stdout
