"""The table of `scalegrad measure` for a terminal. Texts are a stranger's: nothing in them may steer the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scalegrad.results.fitting_table import print_fitting
from scalegrad.results.measure.measurement import Quote
from scalegrad.results.measure.side_by_side import FIGURES, PAIRED, Difference, MeasureReport, Row
from scalegrad.results.measure.wording import (
    MEANINGS,
    TITLES,
    describe,
    number,
    p_value,
    printable,
    sentences,
    signed,
    spread,
)

_COLUMNS = (*FIGURES[:4], "uniq_w", *FIGURES[4:], "texts")


def print_report(report: MeasureReport, console: Console) -> None:
    """Print what the report says in words, the table, the notes, the differences and the worst texts."""
    for sentence in sentences(report):
        console.print(Text(printable(sentence)))
    console.print()
    print_fitting(console, _table(report.rows), _upright_table(report.rows))
    for note in report.notes:
        console.print(Text(f"• {printable(note)}", style="yellow"))
    meanings = [f"{TITLES[name]}: {meaning}" for name, meaning in MEANINGS.items()]
    console.print(Text("; ".join(meanings) + "; ±: half the width of the 95% interval.", style="dim"))
    for pair in report.differences:
        console.print()
        console.print(_difference_table(pair))
    marks = not console.is_terminal or console.no_color
    for name, quotes in report.worst.items():
        if quotes:
            console.print()
            console.print(Text(f"Worst texts of {printable(name)}", style="bold"))
        for quote in quotes:
            console.print(_quoted(quote, marks))


def _table(rows: list[Row]) -> Table:
    table = _empty_table()
    for name in _COLUMNS:
        table.add_column(TITLES[name], justify="right", no_wrap=True)
    for row in rows:
        table.add_row(_label(row), *(_cell(row, name) for name in _COLUMNS), style="green" if row.human else "")
    return table


def _upright_table(rows: list[Row]) -> Table:
    table = _empty_table()
    for row in rows:
        table.add_column(_label(row), justify="right", style="green" if row.human else "")
    for name in _COLUMNS:
        table.add_row(TITLES[name], *(_cell(row, name, between=" ") for row in rows))
    return table


def _empty_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    return table


def _label(row: Row) -> Text:
    return Text(printable(row.name))


def _cell(row: Row, name: str, between: str = "\n") -> Text:
    if name == "texts":
        return Text(f"{row.texts:,}")
    if name == "uniq_w":
        return Text("–" if row.uniq_w is None else f"{row.uniq_w:,}")
    figure = row.figures[name]
    text = Text(number(name, figure.mean))
    if figure.high > figure.low:
        text.append(f"{between}±{spread(name, figure.low, figure.high)}", style="dim")
    return text


def _difference_table(pair: Difference) -> Table:
    title = Text(f"{printable(pair.first)} − {printable(pair.second)}, text by text", style="bold")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("", "difference", "95% interval", "p (permutation)"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name in PAIRED:
        figure = pair.figures[name]
        interval = f"{signed(name, figure.low)} … {signed(name, figure.high)}"
        table.add_row(TITLES[name], signed(name, figure.mean), interval, p_value(pair.p_values[name]))
    return table


def _quoted(quote: Quote, marks: bool) -> Padding:
    text = Text()
    text.append(f"text {quote.number:,}: {describe(quote)}\n", style="dim")
    text.append(printable(quote.before))
    text.append(f"⟪{printable(quote.loop)}⟫" if marks and quote.loop else printable(quote.loop), style="bold red")
    text.append(printable(quote.after))
    return Padding(text, (0, 0, 0, 2))
