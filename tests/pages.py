"""What every report page has to hold in a real browser."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def check_page(browser, path: Path, width: int, scheme: str, name: str):
    """The page at `path`, open, after seeing that it fits, says no error, runs nothing and has the scheme's colours.

    SCALEGRAD_SCREENSHOTS=FOLDER keeps a picture of it.
    """
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown = context.new_page()
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.goto(path.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("window.owned") is None
    assert said == []
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(23, 24, 27)" if scheme == "dark" else "rgb(251, 250, 247)")
    title = shown.locator("figure svg text").first
    assert title.evaluate("e => getComputedStyle(e).fill") == shown.evaluate("getComputedStyle(document.body).color")
    yield shown
    folder = os.environ.get("SCALEGRAD_SCREENSHOTS")
    if folder:
        shown.screenshot(path=str(Path(folder) / f"{name}-{width}-{scheme}.png"), full_page=True)
    context.close()
