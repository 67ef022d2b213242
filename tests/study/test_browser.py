"""A real browser: two raters play a whole study of twenty items, one at a desk with keys, one on a phone by touch.

Needs Chromium (Debian: apt-get install chromium). SCALEGRAD_SCREENSHOTS=FOLDER keeps what was seen.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scalegrad.study import Completions, draw_study
from scalegrad.study.answers import open_answers
from tests.browsers import browser
from tests.study.raters import server
from tests.study.studies import made_folder

__all__ = ["browser"]

DESK = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}

PLAIN = (
    " the old harbour had been rebuilt twice, and the second time the council added a lighthouse of white stone. Ships "
    "came from the north with timber and left with salt, and for a hundred years little else changed."
)
HOSTILE = {
    "script": " <script>window.owned = 1</script><img src=x onerror='window.owned = 2'><b>bold</b>" + PLAIN,
    "bidi": " a sentence \u202eesrever ni sdne taht\u202c and goes on. עברית באמצע." + PLAIN,
    "long": PLAIN * 50,
    "unbroken": " " + "loop" * 2500,
    "emoji": " 👩‍👩‍👧‍👦 went home 🏳️‍🌈 by boat 👍🏽." + PLAIN,
    "lines": " First.\n\n\n\n\n\n\n\nSecond, after much silence.\n\nThird." + PLAIN,
    "empty": "",
    "loop": " the horses are brown and white." * 12,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A study of twenty items for two raters, hostile texts among them, on a real server."""
    prefixes = {
        kind: f"In the year {1700 + i} a traveller wrote that the town of {kind} lay by the sea, that its people were "
        f"kind to strangers, and that in the middle of its market"
        for i, kind in enumerate(HOSTILE)
    }
    texts = {
        "one": HOSTILE,
        "two": {kind: f"{PLAIN} So it is told in {kind}." for kind in HOSTILE},
        "three": dict.fromkeys(HOSTILE, f" there stood a well.{PLAIN}"),
    }
    study = draw_study(
        Completions(prefixes, texts),
        study_id="browser",
        pairs=(("one", "two"), ("one", "three")),
        prefixes=8,
        checks=2,
        repeats=2,
        raters=["anna", "ben"],
        seed=3,
    )
    folder = tmp_path_factory.mktemp("browser") / "study"
    _, links = made_folder(folder, study)
    with server(folder) as (address, _):
        yield study, folder, address, links


class Rater:
    """A person at a browser window."""

    def __init__(self, browser, address, link, kind, settings):
        self.kind = kind
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.goto(address + link)
        assert self.page.url == f"{address}/rate"  # the link has left the address bar

    def begin(self, english):
        self.keep("0-welcome", full=True)
        size = self.page.viewport_size
        self.page.set_viewport_size({"width": 320, "height": 568})
        assert self.page.evaluate("document.documentElement.scrollWidth") <= 320
        self.page.set_viewport_size(size)
        self.page.check(f"input[value={english}]")
        self.page.click("button.primary")
        self.page.wait_for_selector(".buttons")

    def number(self):
        return int(self.page.locator(".count b").inner_text())

    def answer(self, choice):
        """By key at the desk, by touch on the phone; waits for the next page."""
        before = self.page.title()
        if self.kind == "desk":
            self.page.wait_for_timeout(420)  # nobody reads faster than the keys are armed
            self.page.keyboard.press("1" if choice == "first" else "2")
        else:
            self.page.tap(f"button[value={choice}]")
        self.page.wait_for_function("title => document.title !== title", arg=before)

    def look(self):
        """What must hold on every page: buttons in sight, nothing to scroll sideways, no script of a text has run."""
        seen = self.page.evaluate(
            """() => {
              const choices = document.querySelector(".choices").getBoundingClientRect();
              const buttons = [...document.querySelectorAll(".buttons button")].map(b => b.getBoundingClientRect());
              return {
                foot: Math.round(choices.bottom), height: innerHeight,
                smallest: Math.min(...buttons.map(b => Math.min(b.height, b.width))),
                sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
                owned: window.owned ?? null,
                overflow: [...document.querySelectorAll(".text")].some(t => t.scrollWidth > t.clientWidth + 1),
                font: parseFloat(getComputedStyle(document.querySelector(".text")).fontSize),
                background: getComputedStyle(document.body).backgroundColor,
              };
            }"""
        )
        assert seen["foot"] == seen["height"]  # always at the foot of the window, where it was before
        assert seen["smallest"] >= 48
        assert seen["sideways"] == 0
        assert not seen["overflow"]
        assert seen["owned"] is None
        assert seen["font"] >= 18
        assert seen["background"] == ("rgb(251, 250, 247)" if self.kind == "desk" else "rgb(23, 24, 27)")

    def keep(self, name, full=False):
        folder = os.environ.get("SCALEGRAD_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(100)
            self.page.screenshot(path=f"{folder}/{self.kind}-{name}.png", full_page=full)


def test_two_raters_play_a_whole_study(browser, served):
    study, folder, address, links = served
    anna = Rater(browser, address, links["anna"], "desk", DESK)
    ben = Rater(browser, address, links["ben"], "phone", PHONE)
    anna.begin("native")
    ben.begin("fluent")
    plan = {
        (name, number): "first" if (number * step) % 3 else "second"
        for name, step in (("anna", 1), ("ben", 2))
        for number in range(1, 21)
    }
    for number in range(1, 21):
        for name, rater in (("anna", anna), ("ben", ben)):
            assert rater.number() == number
            rater.look()
            if name == "ben" and number == 2:
                rater.page.set_viewport_size({"width": 320, "height": 568})
                rater.look()
                rater.keep("small")
                rater.page.set_viewport_size(PHONE["viewport"])
            shown, item = study.shown(name, number)
            rater.keep(f"{number:02d}-{item.prefix_id}{'-again' if shown.repeat else ''}")
            texts = rater.page.locator(".continuation .text").all_inner_texts()
            assert PLAIN[5:60] in texts[0] + texts[1] or item.kind == "check"
            if name == "anna" and number == 3:
                interrupt(anna)
            rater.answer(plan[name, number])
    for rater in (anna, ben):
        assert "All 20 of your answers are saved" in rater.page.inner_text("main")
        rater.keep("99-done")
        assert rater.troubles == []
        rater.context.close()
    answers = open_answers(folder)
    assert {(answer.rater, answer.number): answer.choice for answer in answers.all()} == plan
    answers.dispose()


def interrupt(rater):
    """At item 3: a reload, digits in a comment, a held key, another tab, and an undo; then item 3 is shown again."""
    page = rater.page
    page.reload()
    assert rater.number() == 3
    page.click("summary")
    page.fill("textarea", "")
    page.keyboard.type("1 of 2 reads like 10")  # in a comment the keys are letters
    assert rater.number() == 3
    rater.keep("03-comment")
    other = rater.context.new_page()
    other.goto(page.url)
    page.locator("textarea").blur()
    page.locator("button[value=second]").dblclick()  # the second click must not answer item 4
    page.wait_for_function("() => document.title.startsWith('4 ')")
    page.wait_for_timeout(600)
    assert rater.number() == 4
    other.locator("button[value=first]").click()
    other.wait_for_selector(".note")
    assert "the earlier answer stands" in other.inner_text(".note")
    other.close()
    page.wait_for_timeout(420)
    page.keyboard.press("u")
    page.wait_for_function("() => document.title.startsWith('3 ')")
    assert page.input_value("textarea") == "1 of 2 reads like 10"
    rater.keep("03-undone")


def test_rating_needs_no_script(browser, tmp_path):
    _, links = made_folder(tmp_path / "study", prefixes=3, ties=True)
    with server(tmp_path / "study") as (address, _):
        plain = Rater(browser, address, links["rater-1"], "desk", DESK | {"java_script_enabled": False})
        plain.page.check("input[value=good]")
        plain.page.click("button.primary")
        for choice in ("second", "tie", "first"):
            plain.page.click(f"button[value={choice}]")
        assert "Thank you" in plain.page.inner_text("h1")
        plain.context.close()
    answers = open_answers(tmp_path / "study")
    assert [answer.choice for answer in answers.all()] == ["second", "tie", "first"]
    answers.dispose()
