"""The page of reproductions in a real browser: it fits, and follows the reader's colours."""

import pytest

from paper.pages import write_folder, write_page
from tests.browsers import browser
from tests.pages import check_page

__all__ = ["browser"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_follows_the_readers_colours(browser, found, plot, tmp_path, width, scheme):
    kept = write_folder(found, [plot], tmp_path / "wikitext")
    path = write_page([kept], tmp_path / "report.html")
    with check_page(browser, path, width, scheme, "reproduction") as shown:
        shown.get_by_role("link", name="Open-ended <generation>").click()
        assert shown.evaluate("location.hash") == "#wikitext"
        assert shown.locator("details[open] mark").first.is_visible()  # the texts of a table about texts lie open
