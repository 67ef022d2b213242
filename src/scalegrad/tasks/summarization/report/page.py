"""The report as one HTML page that needs nothing else. Texts are a stranger's: all is escaped."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from scalegrad._version import __version__
from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.results.comparison.spans import pieces
from scalegrad.results.measure.wording import printable
from scalegrad.runs import write_text
from scalegrad.tasks.summarization.report.sheet import COLUMNS, Article, Sheet
from scalegrad.tasks.summarization.report.terminal import written

ARTICLES = 20


def page(sheet: Sheet, articles: int = ARTICLES) -> str:
    """The page as HTML: the table, then `articles` articles, evenly spread over all, with each system's summary."""
    jinja2 = need("jinja2", extra="measure")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["printable"] = printable
    environment.globals.update(written=written, pieces=pieces, counted=counted)
    source = files("scalegrad.tasks.summarization.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    html: str = environment.from_string(source).render(
        sheet=sheet, columns=COLUMNS, shown=_spread(sheet, articles), version=__version__
    )
    return html


def write_page(sheet: Sheet, path: str | Path, articles: int = ARTICLES) -> Path:
    """Write the page to `path`, whole or not at all."""
    write_text(path, page(sheet, articles))
    return Path(path)


def _spread(sheet: Sheet, count: int) -> list[Article]:
    found = list(sheet.articles)
    count = min(count, len(found))
    return [found[len(found) * place // count] for place in range(count)]
