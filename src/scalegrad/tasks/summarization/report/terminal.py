"""The figures for a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalegrad.results.fitting_table import print_fitting
from scalegrad.results.measure.wording import printable
from scalegrad.tasks.summarization.report.sheet import COLUMNS, Figure, Row, Sheet

_STYLES = {"human": "green", "decoded": "", "trained": ""}


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Print a row for each system (a column, where the terminal is narrow) with intervals, and the notes."""
    print_fitting(console, _wide(sheet), _upright(sheet))
    for row in sheet.rows:
        if row.about:
            console.print(Text(printable(f"{row.label}: {row.about}"), style="dim"))
    for note in sheet.notes:
        console.print(Text(f"• {printable(note)}", style="yellow"))


def written(name: str, figure: Figure | None) -> str:
    """A figure with its interval.

    >>> written("rep_1", Figure(0.1234, 0.1, 0.15)), written("rouge_1", Figure(20.04)), written("rouge_1", None)
    ('.123\\n.100–.150', '20.0', '–')
    """
    if figure is None or figure.mean != figure.mean:
        return "–"
    mean = _number(name, figure.mean)
    if figure.low is None or figure.high is None:
        return mean
    return f"{mean}\n{_number(name, figure.low)}–{_number(name, figure.high)}"


def _number(name: str, value: float) -> str:
    text = f"{value:.{COLUMNS[name][1]}f}"
    return text.removeprefix("0") if COLUMNS[name][1] == 3 and 0 <= value < 1 else text


def _wide(sheet: Sheet) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"Summaries of {printable(sheet.corpus)}", title_justify="left")
    table.add_column("")
    for name in sheet.columns:
        table.add_column(COLUMNS[name][0], justify="right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*_cells(sheet, row), style=_STYLES[row.kind])
    return table


def _upright(sheet: Sheet) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"Summaries of {printable(sheet.corpus)}", title_justify="left")
    table.add_column("")
    for row in sheet.rows:
        table.add_column(Text(printable(row.label)), justify="right", style=_STYLES[row.kind])
    for name in sheet.columns:
        table.add_row(COLUMNS[name][0], *(written(name, row.figures.get(name)) for row in sheet.rows))
    return table


def _cells(sheet: Sheet, row: Row) -> list[Text | str]:
    return [Text(printable(row.label)), *(written(name, row.figures.get(name)) for name in sheet.columns)]
