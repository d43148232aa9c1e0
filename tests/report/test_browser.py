"""Reports in a real browser: what they show, what keys do, and that nothing recorded is run."""

from __future__ import annotations

import itertools
from importlib.resources import files

import pytest

from tests.report.runs import EACH, GROUPS, HOSTILE

ROW_LINKS = "main .row-link"
pytestmark = pytest.mark.slow


def focused(browser):
    return browser.script("return document.activeElement.innerText")


def at(browser):
    return browser.script("return location.hash")


def test_the_overview_shows_trends_and_a_table_of_steps(browser, reports):
    browser.open(reports / "one.html")
    titles = browser.texts(".chart-title")
    assert titles[:4] == ["Reward", "Pass rate", "Response length", "Log-prob"]
    assert browser.texts(ROW_LINKS) == ["1", "2", "3", "4", "5", "6"]
    assert "144 trajectories" not in browser.text()  # validation is counted too
    assert f"{8 * GROUPS * EACH} trajectories" in browser.text()


def test_what_is_not_known_has_no_chart(browser, reports):
    """Neither policy lag, which a function of one's own doesn't tell, nor truncation."""
    browser.open(reports / "one.html")
    assert "Policy lag" not in browser.texts(".chart-title")
    assert "Lag" not in browser.texts("thead button")


def test_validation_has_a_page_of_its_own(browser, reports):
    browser.open(reports / "one.html")
    browser.click(".tabs a:nth-child(2)")
    browser.wait(lambda: browser.texts(ROW_LINKS) == ["3 · val", "6 · val"])


def test_a_table_sorts_by_mouse_and_by_keyboard(browser, reports):
    """And says how, to those who hear it."""
    browser.open(reports / "one.html")
    head = "thead th:nth-child(4)"
    browser.click(f"{head} button")
    assert browser.script(f"return document.querySelector('{head}').ariaSort") == "descending"
    cells = "tbody td:nth-child(4)"
    down = [float(cell) for cell in browser.texts(cells)]
    assert down == sorted(down, reverse=True)
    browser.press("\ue007")  # Enter: the button has the focus
    assert browser.script(f"return document.querySelector('{head}').ariaSort") == "ascending"
    assert [float(cell) for cell in browser.texts(cells)] == sorted(down)


def test_a_step_lists_its_groups_by_the_spread_of_their_rewards(browser, reports):
    browser.open(reports / "one.html", "#/step/4")
    spreads = [float(cell) for cell in browser.texts("tbody td:nth-child(3)")]
    assert len(spreads) == GROUPS
    assert spreads == sorted(spreads, reverse=True)
    browser.drawn(".bar", 5)


def test_a_search_goes_through_prompts_and_responses(browser, reports):
    browser.open(reports / "one.html", "#/step/4/rows")
    browser.search("what is 3")
    browser.wait(lambda: len(browser.texts(ROW_LINKS)) == EACH)
    browser.search("no such text")
    browser.wait(lambda: "No trajectory matches." in browser.text())
    browser.press("\ue00c")  # Escape empties it
    browser.wait(lambda: len(browser.texts(ROW_LINKS)) == GROUPS * EACH)


def test_outcomes_and_bars_filter(browser, reports):
    browser.open(reports / "one.html", "#/step/4/rows")
    passed = "tbody td:nth-child(4)"
    browser.script(
        "const box = document.getElementById('outcome'); box.value = 'failed';"
        "box.dispatchEvent(new Event('change'))"
    )
    assert set(browser.texts(passed)) == {"no"}
    browser.drawn(".picks .catch")
    browser.script(
        "document.querySelector('.picks .catch').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert browser.texts(".filter") == ["reward 0 \N{MULTIPLICATION SIGN}"]
    browser.click(".filter")
    assert browser.texts(".filter") == []


def test_a_trajectory_is_opened_by_the_keyboard_and_left_again(browser, reports):
    """j, Enter, j, Escape, Escape: and the focus is where it was."""
    browser.open(reports / "one.html", "#/step/4/rows")
    browser.press("j", "j", "j", "k")
    assert focused(browser) == "1"
    browser.press("\ue007")
    browser.wait(lambda: at(browser) == "#/step/4/row/1" and "Row 1" in browser.text())
    browser.press("j")
    browser.wait(lambda: "Row 2" in browser.text())
    browser.driver.back()
    browser.wait(lambda: "Row 1" in browser.text())
    browser.press("\ue00c")
    browser.wait(lambda: at(browser) == "#/step/4/group/0" and focused(browser) == "1")
    browser.press("\ue00c")
    browser.wait(lambda: at(browser) == "#/step/4")
    browser.press("]")
    browser.wait(lambda: "Step 5" in browser.text())


def test_a_trajectory_shows_prompt_tokens_and_fields(browser, reports):
    browser.open(reports / "one.html", "#/step/4/row/4")
    text = browser.text()
    assert "You add numbers." in text
    assert "What is 1 + 4?" in text
    assert "i64[500]" in text
    assert browser.script("return document.querySelectorAll('.tokens .masked').length") == 3
    shown = browser.script("return document.querySelector('.tokens').textContent")
    assert shown.count("\N{BLACK HEART SUIT}") or " sum" in shown
    browser.press("n")
    assert browser.script("return document.querySelector('.here').className").startswith("s")
    assert "probability" in browser.text("#tip")


@pytest.mark.parametrize("name", ["one.html", "plain.html"])
def test_what_a_model_wrote_is_text_and_nothing_else(name, browser, reports):
    """A script's end, an image with a handler, a tag in the metadata: each is shown as it is."""
    browser.open(reports / name, "#/step/2/row/0")
    if name == "one.html":
        assert HOSTILE in browser.script("return document.querySelector('.tokens').textContent")
    else:
        assert f"It is {HOSTILE} needle" in browser.text()
    browser.open(reports / name, "#/step/2/rows")
    browser.open(reports / name)
    assert "note = '<b>bold</b>'" in browser.text()
    assert "owned" not in browser.driver.title
    assert (
        browser.script("return document.querySelectorAll('main img, main script, main b').length")
        == 0
    )


def test_the_page_may_load_and_send_nothing(chromium, reports):
    """The browser itself forbids it: images, requests, inline handlers."""
    chromium.open(reports / "one.html")
    chromium.errors()
    chromium.driver.set_script_timeout(300)
    refused = chromium.driver.execute_async_script(
        "const done = arguments[0]; fetch('file:///etc/hosts').then(() => done(false), () => done(true))"
    )
    assert refused
    chromium.script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned=1\">')"
    )
    assert chromium.script("return window.owned") is None
    assert any("Content Security Policy" in line for line in chromium.errors())


def test_two_cassettes_stand_side_by_side(browser, reports):
    browser.open(reports / "both.html")
    assert len(browser.texts("h1")) == 2
    browser.drawn(".chart:first-child .line", 2)
    assert (
        browser.script("return document.querySelectorAll('.chart:first-child .line').length") == 2
    )
    browser.go("#/step/4")
    assert "Change" in browser.texts("thead button")
    browser.go("#/step/4/row/3")
    assert browser.script("return document.querySelectorAll('.tokens').length") == 2
    assert browser.script("return document.querySelectorAll('.differs').length") == 2
    browser.go("#/step/6/row/3")
    assert "The other cassette has no such trajectory." in browser.text()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.031, 0.0315, 0.032], ["31.0 ms", "31.5 ms", "32.0 ms"]),
        ([0, 0.02, 0.04], ["0 s", "20 ms", "40 ms"]),
        ([1.25, 1.3, 1.35], ["1.25 s", "1.30 s", "1.35 s"]),
        ([30, 45, 60], ["30 s", "45 s", "1 m 00 s"]),
    ],
)
def test_the_figures_of_an_axis_are_told_apart(browser, values, told):
    source = (files("rollout_cassettes.report") / "assets" / "amounts.js").read_text()
    script = f"{source}; return arguments[0].map((value) => seconds(value, arguments[1]))"
    assert browser.script(script, values, round(values[2] - values[1], 6)) == told


def test_charts_tell_their_figures(browser, reports):
    browser.open(reports / "one.html")
    browser.drawn(".plot svg")
    browser.script("document.querySelector('.plot').focus()")
    browser.press("\ue014", "\ue014")  # right, twice
    assert browser.text("#tip").startswith("step 2\n")
    browser.press("\ue007")
    browser.wait(lambda: at(browser) == "#/step/2")


def test_the_theme_can_be_chosen(browser, reports):
    browser.open(reports / "one.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.script(ground)
    browser.press("t")
    assert browser.script(ground) != light
    browser.press("t")
    assert browser.script(ground) == light
    browser.press("t", "?")
    assert browser.script("return document.getElementById('keys').open")
    browser.press("\ue00c")


def test_a_place_that_is_not_there_is_said_to_be(browser, reports):
    browser.open(reports / "one.html", "#/step/77")
    assert "There is no step 77 in this report." in browser.text()
    browser.open(reports / "one.html", "#/step/2/row/99")
    assert "There is no trajectory 99 in step 2." in browser.text()


PLACES = {
    "overview": "#/",
    "step": "#/step/4",
    "rows": "#/step/4/rows",
    "group": "#/step/4/group/1",
    "row": "#/step/4/row/4",
}


@pytest.mark.parametrize(
    "look", list(itertools.product(("one", "both"), (1280, 390), ("light", "dark"))), ids=str
)
def test_every_page_fits_its_window(look, browser, reports, shots):
    """Screenshots of all pages stay in the directory that ROLLOUT_CASSETTES_SHOTS names."""
    name, width, scheme = look
    browser.look(width, scheme)
    browser.open(reports / f"{name}.html")
    for place, address in PLACES.items():
        browser.go(address)
        assert browser.overflow() <= 0, place
        browser.screenshot(shots / f"{name}-{place}-{width}-{scheme}.png")
        assert (shots / f"{name}-{place}-{width}-{scheme}.png").stat().st_size > 5000
