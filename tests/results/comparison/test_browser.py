"""The page in a real browser: at a desk and on a phone, in light and dark.

Needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import pytest

from scalegrad.results.comparison import write_page
from tests.browsers import browser
from tests.pages import check_page

__all__ = ["browser"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_follows_the_readers_colours(browser, comparison, tmp_path, width, scheme):
    path = write_page(comparison, tmp_path / "report.html")
    with check_page(browser, path, width, scheme, "comparison") as shown:
        assert shown.locator("mark").first.is_visible()
