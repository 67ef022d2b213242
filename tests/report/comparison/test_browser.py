"""The page in a real browser: at a desk and on a phone, in light and dark. SCALEGRAD_SCREENSHOTS=FOLDER keeps it.

Needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.browsers import browser

from scalegrad.report.comparison import write_page

__all__ = ["browser"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_follows_the_readers_colours(browser, comparison, tmp_path, width, scheme):
    path = write_page(comparison, tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown = context.new_page()
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.goto(path.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("window.owned") is None
    assert said == []
    dark = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == ("rgb(23, 24, 27)" if scheme == "dark" else "rgb(251, 250, 247)")
    title = shown.locator("figure svg text").first
    assert title.evaluate("e => getComputedStyle(e).fill") == shown.evaluate("getComputedStyle(document.body).color")
    assert shown.locator("mark").first.is_visible()
    folder = os.environ.get("SCALEGRAD_SCREENSHOTS")
    if folder:
        shown.screenshot(path=str(Path(folder) / f"comparison-{width}-{scheme}.png"), full_page=True)
    context.close()
