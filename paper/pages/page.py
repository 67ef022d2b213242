"""All reproductions of a folder as one HTML page that needs nothing else, in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paper.pages.markdown import how_made
from paper.pages.result import Reproduction, Shown, where, with_notes_once
from scalegrad.results.comparison.page import Example, Laid, examples, lay_out, meanings, render
from scalegrad.runs import write_text

TITLE = "The paper, done again"


class _Table(NamedTuple):
    title: str
    laid: Laid
    examples: list[Example]
    open: bool  # whether the texts are what the table is about


class _Part(NamedTuple):
    found: Reproduction
    where: str
    tables: list[_Table]
    pictures: list[tuple[str, str]]  # caption, svg
    made: dict[str, str]


def page(found: Sequence[Reproduction]) -> str:
    """The page as HTML: a list of what there is, then a part for each reproduction."""
    parts = [
        _Part(
            one,
            where(one.shows),
            [_table(table) for table in with_notes_once(one.tables)],
            [(picture.caption, picture.svg) for picture in one.pictures],
            how_made(one.made),
        )
        for one in found
    ]
    names = [name for part in parts for table in part.tables for name in (*table.laid.names, *table.laid.further)]
    scales = dict.fromkeys(one.scale for one in found)
    return render(
        "page.html.j2", Path(__file__).parent, title=TITLE, parts=parts, scales=list(scales), meanings=meanings(names)
    )


def write_page(found: Sequence[Reproduction], path: str | Path) -> Path:
    """Write the page to `path`, whole or not at all."""
    write_text(path, page(found))
    return Path(path)


def _table(table: Shown) -> _Table:
    systems = [system for system in table.comparison.systems if system.samples]
    most = max((len(system.samples) for system in systems), default=0)
    return _Table(table.title, lay_out(table.comparison), examples(table.comparison, most, systems), table.texts)
