"""Rows of this machine beside the paper's: which of them compare, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paper.differences import minus_mle
from paper.printed import printed
from scalegrad.results.comparison import Comparison, Plot, System
from scalegrad.results.comparison.columns import column, written
from scalegrad.results.figure import PALETTE, new_figure, style_axes
from scalegrad.runs import Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HUMAN_TEXTS = "The paper's human row is on texts of 150 tokens, the one here on texts as long as the models'."
_NEXT_TOKEN = ("ppl", "uniq", "rep_window_16", "rep_window_32", "rep_window_128")


def paper_rows(table: int, here: Sequence[Row], runs: Sequence[Run]) -> tuple[list[Row], list[str]]:
    """The paper's rows of the systems and metrics that are here, and notes on what they compare with.

    Columns of next tokens compare where tokenizer and window are the paper's, those of texts where the length is.
    """
    systems = {(row.objective, row.strength, row.decoding) for row in here}
    systems |= {(objective, strength, None) for objective, strength, _ in systems}
    metrics = {row.metric for row in here}
    rows = [row for row in printed(table) if (row.objective, row.strength, row.decoding) in systems]
    rows = [row for row in rows if row.metric in metrics]
    about = [(row.corpus, row.split) for row in here]
    settings = [entry["settings"] for run in runs for entry in run.evaluations_now()]
    settings = [one for one in settings if (one.get("corpus"), one.get("split")) in about]
    tokens = all(one.get("tokenizer", "gpt2") == "gpt2" and one.get("window", 1024) in (None, 1024) for one in settings)
    texts = all(one.get("new_tokens") in (None, 100) for one in settings)
    if not rows or not (tokens or texts):
        return [], ["The paper's rows do not compare: another tokenizer or context, and texts of another length."]
    notes = [
        f"The paper's rows (table {table}) are those of GPT-2 medium fine-tuned on WikiText-103: hold the direction "
        "and the size of differences against them, not the level."
    ]
    if texts and any(row.decoding for row in here):
        notes.append(HUMAN_TEXTS)
    if not tokens or not texts:
        compares = "Rep-n" if texts else "the columns of next-token prediction"
        why = "tokenizer and context" if texts else "length of the texts"
        notes.append(f"Of the paper's rows only {compares} are shown: the others depend on the {why}.")
        rows = [row for row in rows if (row.metric in _NEXT_TOKEN) != texts and row.metric != "uniq_w"]
    return rows, notes


def in_paper(system: System, comparison: Comparison) -> System | None:
    """The paper's row of the same system: its decoding is that of the table where it names none."""
    for row in comparison.of_kind("paper"):
        same = (row.objective, row.strength, row.penalty) == (system.objective, system.strength, system.penalty)
        if same and (row.decoding == system.decoding or (row.decoding is None and system.kind == "trained")):
            return row
    return None


def beside_paper(comparison: Comparison, name: str, plot: str, title: str, caption: str = "") -> Plot | None:
    """A figure of every row that is here and in the paper, a panel each: order and gaps compare, values do not."""
    pairs = [(system, in_paper(system, comparison)) for system in comparison.of_kind("trained", "decoded")]
    both = [(here, paper) for here, paper in pairs if paper and name in here.figures and name in paper.figures]
    if len(both) < 2:
        return None
    here, paper = [system for system, _ in both], [system for _, system in both]
    figure = new_figure(7.6, 1.25 + 0.36 * len(here))
    left, right = figure.subplots(1, 2, sharey=True)
    faint = [system.kind == "decoded" for system in here]
    _bars(left, here, name, faint)
    _bars(right, paper, name, faint)
    people = [comparison.human, next((s for s in comparison.of_kind("paper") if s.objective == "human"), None)]
    values = [system.figures.get(name) if system else None for system in people]
    for axes, value in zip((left, right), values, strict=True):
        if value is not None:
            axes.axvline(value, color=PALETTE["human"], linewidth=1.6, linestyle=(0, (4, 2)))
    left.set_yticks(range(len(here)), [system.label for system in here])
    left.invert_yaxis()
    style_axes(left, title="here", x=column(name).title, y="")
    style_axes(right, title="in the paper", x=column(name).title, y="")
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=PALETTE["ink"], fontweight="bold")
    dashed = " Dashed: people." if values[0] is not None else ""
    spread = " Lines: 95% interval over texts." if any(s.intervals for s in here) else ""
    spread = spread or (" Lines: deviation over seeds." if any(s.deviations for s in here) else "")
    return Plot(plot, f"{caption} Compare order and gaps, not values.{dashed}{spread}".strip(), figure)


def _bars(axes: Axes, systems: Sequence[System], name: str, faint: Sequence[bool]) -> None:
    ends = []
    for place, system in enumerate(systems):
        value = system.figures[name]
        colour = PALETTE.get(system.objective, PALETTE["other"])
        axes.barh(place, value, height=0.62, color=colour, alpha=0.55 if faint[place] else 1.0)
        low, high = system.intervals.get(name, (value, value))
        if name in system.deviations and name not in system.intervals:
            low, high = value - system.deviations[name], value + system.deviations[name]
        if high > low:
            axes.plot([low, high], [place, place], color=PALETTE["ink"], linewidth=1.5)
        ends.append(high)
        axes.annotate(
            written(name, value), (max(high, value), place), (4, 0), textcoords="offset points", va="center",
            fontsize=8.5, color=PALETTE["ink"],
        )  # fmt: skip
    axes.set_xlim(0, max([*ends, 1e-3]) * 1.25)


def difference_plot(comparison: Comparison, names: Sequence[str], plot: str, title: str) -> Plot | None:
    """What each system gains over MLE, text by text, with its interval: the metrics NAME_minus_mle."""
    metrics = [minus_mle(name) for name in names]
    systems = [s for s in comparison.of_kind("trained") if any(metric in s.figures for metric in metrics)]
    names = [name for name, metric in zip(names, metrics, strict=True) if all(metric in s.figures for s in systems)]
    if not systems or not names:
        return None
    figure = new_figure(1.9 + 1.7 * len(names), 1.3 + 0.34 * len(systems))
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for place, system in enumerate(systems):
            colour = PALETTE.get(system.objective, PALETTE["other"])
            axes.plot(system.intervals[minus_mle(name)], [place, place], color=colour, linewidth=2)
            axes.plot([system.figures[minus_mle(name)]], [place], "o", color=colour, markersize=5)
        axes.axvline(0, color=PALETTE["soft"], linewidth=1)
        style_axes(axes, title="", x=column(name).title, y="")
        axes.tick_params(axis="x", labelsize=8.5)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(range(len(systems)), [system.label for system in systems])
    panels[0].invert_yaxis()
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=PALETTE["ink"], fontweight="bold")
    caption = (
        "Difference from MLE of the same seeds, text by text. Lines: its 95% bootstrap interval over texts; what "
        "another training would give is not in them."
    )
    return Plot(plot, caption, figure)


def without_texts(comparison: Comparison) -> Comparison:
    """The comparison without its texts: they lie in the runs' folders."""
    return replace(comparison, systems=[replace(system, samples=()) for system in comparison.systems])
