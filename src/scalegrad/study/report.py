"""An analysis to read: tables for a terminal, CSV, and a page that stands alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from scalegrad._version import __version__
from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.runs import write_text
from scalegrad.study.analysis import Analysis, PairFigures
from scalegrad.study.votes import Vote, votes_csv

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WEB = Path(__file__).parent / "web"


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Print the figures of pairs and of raters; narrow enough for 80 columns."""
    columns = [
        "pair",
        "votes",
        "win rate",
        f"{100 * analysis.level:g}% interval",
        "% agr.",
        "AC1",
        "κ",
        "α",
        "sign test",
    ]
    pairs = _table(f"{analysis.title} {analysis.answered} of {counted(analysis.asked, 'answer')}", columns)
    for pair in analysis.pairs:
        pairs.add_row(*pair_cells(pair))
    console.print(pairs)
    columns = ["rater", "English", "answered", "failed checks", "repeats alike", "first chosen", "s per item"]
    raters = _table("Raters", columns + [f"{pair.a} over {pair.b}" for pair in analysis.pairs])
    for cells in rater_rows(analysis):
        raters.add_row(*cells)
    console.print(raters)
    for sentence in (position_sentence(analysis), *analysis.notes):
        console.print(sentence, markup=False)


def _table(title: str, columns: list[str]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for name in columns:
        table.add_column(name, justify="left" if name in ("pair", "rater", "English") else "right")
    return table


def pair_cells(pair: PairFigures) -> list[str]:
    """The cells of a pair's row."""
    test = pair.sign_test
    return [
        f"{pair.a}:{pair.b}",
        str(pair.votes),
        percent(pair.win_rate.estimate),
        f"{100 * pair.win_rate.low:.1f}–{percent(pair.win_rate.high)}",
        percent(pair.agreement),
        decimal(pair.ac1),
        decimal(pair.kappa),
        decimal(pair.alpha),
        f"{test.for_a}:{test.for_b}, p{p_value(test.p_value)}",
    ]


def rater_rows(analysis: Analysis) -> list[list[str]]:
    """The cells of the raters' rows."""
    return [
        [
            rater.rater + (" (left out)" if rater.left_out else ""),
            rater.english or "–",
            f"{rater.answered}/{rater.asked}",
            f"{rater.checks_failed}/{rater.checks}" if rater.checks else "–",
            f"{rater.repeats_alike}/{rater.repeats}" if rater.repeats else "–",
            percent(rater.first_share),
            "–" if math.isnan(rater.seconds) else f"{rater.seconds:.0f}",
            *(percent(rater.win_rates[f"{pair.a} over {pair.b}"]) for pair in analysis.pairs),
        ]
        for rater in analysis.raters
    ]


def position_sentence(analysis: Analysis) -> str:
    """Position bias in words."""
    bias = analysis.position
    if math.isnan(bias.share):
        return "No pair has been rated yet."
    return (
        f"Position: the text shown first was chosen {counted(bias.first, 'time')} of {bias.first + bias.second} "
        f"({percent(bias.share)}; without bias a split this uneven has p{p_value(bias.p_value)})."
    )


def analysis_as_dict(analysis: Analysis) -> dict[str, Any]:
    """For JSON: a figure that does not exist (agreement of one rater) is None."""
    figures = _without_nan(asdict(analysis))
    assert isinstance(figures, dict)
    return figures


def write_report(analysis: Analysis, votes: Iterable[Vote], folder: str | Path) -> None:
    """Write report.html, pairs.csv, raters.csv and votes.csv into `folder`, each whole or not at all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "report.html": report_page(analysis),
        "pairs.csv": _csv([_flat(asdict(pair)) for pair in analysis.pairs], _columns(PairFigures)),
        "raters.csv": _csv([_flat(asdict(rater)) for rater in analysis.raters]),  # a study has at least one
        "votes.csv": votes_csv(votes),
    }
    for name, text in files.items():
        write_text(folder / name, text)


def report_page(analysis: Analysis) -> str:
    """A page that stands alone: no script, nothing loaded from elsewhere."""
    jinja2 = need("jinja2", extra="study")
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    style = (WEB / "static" / "study.css").read_text(encoding="utf-8")
    report = templates.get_template("report.html")
    return str(report.render(results=analysis, style=style, version=__version__, **result_words()))


def result_words() -> dict[str, Any]:
    """What the template of results needs besides an analysis."""
    return {
        "counted": counted,
        "pair_cells": pair_cells,
        "rater_rows": rater_rows,
        "position_sentence": position_sentence,
        "percent": percent,
    }


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.705), percent(math.nan)
    ('70.5%', '–')
    """
    return "–" if math.isnan(share) else f"{100 * share:.1f}%"


def decimal(figure: float) -> str:
    """A coefficient with two decimals.

    >>> decimal(0.781), decimal(-0.1)
    ('.78', '−.10')
    """
    if math.isnan(figure):
        return "–"
    return f"{figure:.2f}".replace("0.", ".", 1).replace("-", "−")


def p_value(p: float) -> str:
    """A p-value as it is printed.

    >>> p_value(0.00002), p_value(0.0312)
    ('<.001', '=.031')
    """
    return "<.001" if p < 0.001 else f"={p:.3f}".replace("0.", ".", 1)


def _csv(rows: list[dict[str, Any]], columns: list[str] | None = None) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _columns(figures: type) -> list[str]:
    """The names `_flat` gives to figures of this dataclass, known before there is one.

    >>> _columns(PairFigures)[5:9]
    ['prefixes', 'win_rate_estimate', 'win_rate_low', 'win_rate_high']
    """
    names: list[str] = []
    for name, kind in get_type_hints(figures).items():
        names += [f"{name}_{inner.name}" for inner in fields(kind)] if is_dataclass(kind) else [name]
    return names


def _flat(figures: dict[str, Any]) -> dict[str, Any]:
    """Nested figures side by side.

    >>> _flat({"a": 1, "win_rate": {"low": 0.5, "high": 0.75}})
    {'a': 1, 'win_rate_low': 0.5, 'win_rate_high': 0.75}
    """
    flat: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            flat |= {f"{name}_{inner}": figure for inner, figure in value.items()}
        else:
            flat[name] = value
    return flat


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
