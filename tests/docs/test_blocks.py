"""Every block of every page runs, and prints what the page says."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from types import ModuleType

import pytest

from tests.docs import setups
from tests.docs.blocks import Page, pages
from tests.docs.outputs import matches
from tests.docs.running import PageRun, check_runs_elsewhere, check_signature
from tests.torchrl import conftest as torchrl
from tests.trl import conftest as trl
from tests.verl import conftest as verl

MARKS = {
    "verl": [pytest.mark.verl],
    "trl": [pytest.mark.trl],
    "torchrl": [pytest.mark.torchrl],
}
FOREIGN_WARNINGS = {
    "verl": verl.FOREIGN_WARNINGS,
    "trl": trl.FOREIGN_WARNINGS,
    "torchrl": torchrl.FOREIGN_WARNINGS,
}


def _parameters(*needs):
    """Return the pages whose blocks import these packages, besides the core's."""
    marks = [
        mark
        for package in needs
        for mark in (
            *MARKS.get(package, ()),
            pytest.mark.skipif(find_spec(package) is None, reason=f"the page needs {package}"),
            *map(pytest.mark.filterwarnings, FOREIGN_WARNINGS.get(package, ())),
        )
    ]
    return [
        pytest.param(page, id=str(page.path), marks=marks)
        for page in pages()
        if page.needs == set(needs)
    ]


@pytest.mark.parametrize("page", _parameters())
def test_a_page_does_what_it_says(page, main):
    """Its blocks run in order, in one namespace, and print what stands below them."""
    with ExitStack() as stack:
        known = {
            "committed_cassettes": setups.committed_cassettes,
            "slime_run": lambda: setups.slime_run(stack),
            "slime_debug_data": setups.slime_debug_data,
            "skyrl_experiment": lambda: setups.skyrl_experiment(stack),
            "openrlhf_trainer": lambda: setups.openrlhf_trainer(stack),
        }
        PageRun(page, main, known).run()


@pytest.mark.parametrize("page", _parameters("verl"))
def test_a_page_on_verl_does_what_it_says(page, main, train, assets):
    """The trainer is the real one, in this process."""
    known = {
        "verl_trainer": lambda: setups.verl_trainer(train),
        "verl_validation": lambda: setups.verl_validation(train),
        "verl_skip": lambda: setups.verl_skip(assets),
        "verl_dumps": lambda: setups.verl_dumps(train),
    }
    PageRun(page, main, known).run()


@pytest.mark.parametrize("page", _parameters("trl"))
def test_a_page_on_trl_does_what_it_says(page, main, train_trl):
    """The trainer is the real one, with a tiny model."""
    PageRun(page, main, {"trl_trainer": lambda: setups.trl_trainer(train_trl)}).run()


@pytest.mark.parametrize("page", _parameters("torchrl"))
def test_a_page_on_torchrl_does_what_it_says(page, main, train_torchrl):
    """The collector is the real one, with a tiny model."""
    from tests.torchrl.training import one_thread

    known = {"torchrl_collector": lambda: setups.torchrl_collector(train_torchrl)}
    with one_thread():
        PageRun(page, main, known).run()


@pytest.mark.parametrize("page", _parameters("s3fs"))
def test_a_page_on_s3_does_what_it_says(page, main, monkeypatch):
    """The client is the real one; the server is moto, which speaks S3 on this machine."""
    pytest.importorskip("moto")
    with ExitStack() as stack:
        PageRun(page, main, {"s3_bucket": lambda: setups.s3_bucket(monkeypatch, stack)}).run()


def test_every_page_is_run_by_one_of_these():
    """None falls between the packages that pages need."""
    needs = [(), ("verl",), ("trl",), ("torchrl",), ("s3fs",)]
    parameters = [parameter for each in needs for parameter in _parameters(*each)]
    assert sorted(p.id for p in parameters) == sorted(str(page.path) for page in pages())


# ---- the runner itself


def run(text, tmp_path, monkeypatch):
    """Run a page with this text."""
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    PageRun(Page.read(tmp_path / "page.md"), ModuleType("__main__"), {}).run()


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n```text\n2\n```",
        "```python\nprint(1)\n```",
        "```python\n1\n```\n```text\n1\n```",
        "```bash\necho one\n```\n```text\ntwo\n```",
        "```bash\nfalse\n```",
        "```python\nassert 1 == 2\n```",
        "```text\nnobody prints this\n```",
        "```\nno language\n```",
        "```yaml\nkey: value\n```",
        "<!-- run by tests/docs/test_blocks.py::no_such_test -->\n```bash\nfalse\n```",
        "<!-- page run by tests/docs/test_blocks.py::no_such_test -->\n```bash\nfalse\n```",
        "<!-- run by .ci/run -->\n```bash\nmake coffee\n```",
        "<!-- signature of replay -->\n```python\ndef replay(steps=None, mode='repeat'): ...\n```",
    ],
    ids=range(13),
)
def test_a_page_that_is_wrong_fails(text, tmp_path, monkeypatch):
    """Output that differs or is missing, commands that fail, and blocks that nothing runs."""
    with pytest.raises(AssertionError):
        run(text, tmp_path, monkeypatch)


def test_an_error_names_the_line_of_the_page(tmp_path, monkeypatch):
    """The traceback leads to the page."""
    with pytest.raises(ZeroDivisionError) as caught:
        run("# Title\n\n```python\nx = 1\n\nx / 0\n```", tmp_path, monkeypatch)
    last = caught.traceback[-1]
    assert str(last.path).endswith("page.md")
    assert last.lineno + 1 == 6


def test_blocks_share_a_namespace_and_notes_are_read(tmp_path, monkeypatch):
    """The comments before a block belong to it."""
    text = (
        "```python\nx = 41\n```\n<!-- one -->\n\n<!-- amounts vary -->\n\n```python\nx += 1\n```\n"
    )
    run(text, tmp_path, monkeypatch)
    page = Page.read(tmp_path / "page.md")
    assert page.named("one").notes == ("one", "amounts vary")
    assert page.named("one").text == "x += 1\n"


@pytest.mark.parametrize(
    ("expected", "printed", "vary", "same"),
    [
        ("3 steps, 8.5 kB, 0.60 s saved", "3 steps, 912 B, 12 m 31 s saved", True, True),
        ("3 steps, 8.5 kB, 0.60 s saved", "4 steps, 8.5 kB, 0.60 s saved", True, False),
        ("3 steps, 8.5 kB, 0.60 s saved", "3 steps, 8.5 s, 0.60 s saved", True, False),
        ("reward 0.12", "reward 0.25", True, True),
        ("reward 0.12", "reward 0.25", False, False),
        ("reward 0.12", "reward 1", True, False),
        ("a ... z", "a to z", False, True),
        ("a\n...\nz", "a\nb\nc\nz", False, True),
        ("a\n...\nz", "a\nz", False, True),
        ("a\n...\nz", "a\nb", False, False),
        ("", "", False, True),
        ("", "a", False, False),
        ("1.5", "125", False, False),
        ("age\n───\n5 s   ago", "age\n────\n15 s  ago", True, True),
        ("a   b", "a  b", False, False),
        ("a   b", "a b", True, True),
        ("a b", "a  b", True, False),
    ],
)
def test_outputs_are_compared(expected, printed, vary, same):
    """Whole numbers always count; amounts may vary where the page says so."""
    assert matches(expected, printed, amounts_vary=vary) is same


# ---- what other tests run


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.path)) for page in pages()])
def test_what_runs_a_block_elsewhere_exists(page):
    """Also on pages that are skipped here because verl is missing."""
    for block in page.blocks:
        if block.note("run by"):
            check_runs_elsewhere(block)
        if block.note("signature of"):
            check_signature(block)
