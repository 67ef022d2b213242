"""The report as one HTML page that needs nothing else, in light and dark. Texts are a stranger's: all is escaped."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from scalegrad.extras import need
from scalegrad.results.measure.side_by_side import FIGURES, PAIRED, MeasureReport
from scalegrad.results.measure.wording import MEANINGS, TITLES, describe, number, p_value, printable, sentences, signed
from scalegrad.runs import write_text

_STRIPS = ("rep_1", "rep_2", "rep_3", "rep_4", "stuck", "diversity")


def page(report: MeasureReport) -> str:
    """The page as HTML."""
    jinja2 = need("jinja2", extra="measure")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals.update(
        number=number, signed=signed, p_value=p_value, describe=describe, titles=TITLES, meanings=MEANINGS
    )
    environment.filters["printable"] = printable
    source = files("scalegrad.results.measure").joinpath("page.html.j2").read_text(encoding="utf-8")
    html: str = environment.from_string(source).render(
        report=report, sentences=sentences(report), figures=FIGURES, paired=PAIRED, strips=_STRIPS
    )
    return html


def check_path(path: Path) -> None:
    """Refuse a path that cannot be written to, before any work is done for it."""
    if not path.parent.is_dir():
        raise ValueError(f"{path}: its folder {path.parent} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file to write")


def write_page(report: MeasureReport, path: Path) -> None:
    """Write the page to `path`, whole or not at all."""
    check_path(path)
    write_text(path, page(report))
