"""A directed task's rows beside the paper's: as systems, and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paper.printed import TABLES, PaperTable, read_label
from scalegrad.results.comparison import Comparison, Plot, System
from scalegrad.results.comparison.colours import PALETTE
from scalegrad.results.comparison.columns import column, written
from scalegrad.results.comparison.evaluations import HUMAN
from scalegrad.results.figure import new_figure, style_axes
from scalegrad.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IN_PAPER = ", in the paper"
HUMAN_TEXTS = "The paper's human row is on texts of 150 tokens, the one here on texts as long as the models'."
_TEXTS = ("rep_1", "rep_2", "rep_3", "uniq_w")  # what depends on the texts, not on the tokens predicted


def paper_rows(
    corpus: str, labels: Iterable[str], protocols: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[System], list[str]]:
    """The paper's rows of a corpus for these labels and human text, and sentences on what they compare with."""
    table = TABLES.get(corpus)
    wanted = [label for label in dict.fromkeys(labels) if table and label in table.rows]
    if table is None or not wanted:
        return [], []
    tokens, texts = (all(compares(protocol) for protocol in protocols) for compares in (_same_tokens, _same_texts))
    if not tokens and not texts:
        return [], ["The paper's rows do not compare: another tokenizer or context, and texts of another length."]
    said = [
        f"The paper's rows (table {table.number}) are those of GPT-2 medium fine-tuned on WikiText-103: hold the "
        "direction and the size of differences against them, not the level."
    ]
    if texts:
        said.append(HUMAN_TEXTS)
    if not tokens or not texts:
        kept = "Rep-n" if texts else "the columns of next-token prediction"
        why = "tokenizer and context" if texts else "length of the texts"
        said.append(f"Of the paper's rows only {kept} are shown: the others depend on the {why}.")
    shown = [name for name in table.columns if (texts if name in _TEXTS else tokens)]
    if not tokens:
        shown.remove("uniq_w")
    return [_paper_row(table, label, shown) for label in (*wanted, HUMAN)], said


def with_paper_rows(comparison: Comparison, runs: Sequence[Run]) -> Comparison:
    """The runs' comparison, with the paper's rows of the same corpus and objectives below."""
    evaluations = [run.load("evaluation").get(comparison.corpus, {}) for run in runs]
    protocols = [evaluation["protocol"] for evaluation in evaluations if "protocol" in evaluation]
    labels = [system.label for system in comparison.of_kind("trained", "decoded")]
    rows, notes = paper_rows(comparison.corpus, labels, protocols)
    return replace(comparison, systems=[*comparison.systems, *rows], notes=[*comparison.notes, *notes])


def _paper_row(table: PaperTable, label: str, shown: Sequence[str]) -> System:
    figures, deviations = (
        {name: row[name] for name in shown if name in row}
        for row in (table.rows[label], table.deviations.get(label, {}))
    )
    family = "human" if label == HUMAN else read_label(label)[0]
    return System(f"{label}, in the paper", figures, "paper", family, deviations=deviations)


def _same_tokens(protocol: Mapping[str, Any]) -> bool:
    return bool(protocol.get("gpt2_tokenizer", True)) and protocol.get("chunk_targets", 1024) == 1024


def _same_texts(protocol: Mapping[str, Any]) -> bool:
    return bool(protocol.get("new_tokens", 100) == 100)


def paper_systems(*tables: str, where: str = IN_PAPER) -> list[System]:
    """The rows of the paper's tables, those of one label joined."""
    rows: dict[str, dict[str, float]] = {}
    for table in tables:
        for label, figures in TABLES[table].rows.items():
            rows.setdefault(label, {}).update(figures)
    return [
        System(f"{label}{where}", figures, "paper", "human" if label == "Human" else read_label(label)[0])
        for label, figures in rows.items()
    ]


def beside_paper(comparison: Comparison, name: str, plot: str, title: str, caption: str = "") -> Plot | None:
    """A figure of every row that is here and in the paper, a panel each: order and gaps compare, values do not."""
    here = [system for system in comparison.of_kind("trained", "decoded") if name in system.figures]
    paper = {s.label.removesuffix(IN_PAPER): s for s in comparison.of_kind("paper") if name in s.figures}
    here = [system for system in here if system.label in paper]
    if len(here) < 2:
        return None
    figure = new_figure(7.6, 1.25 + 0.36 * len(here))
    left, right = figure.subplots(1, 2, sharey=True)
    faint = [system.kind == "decoded" for system in here]
    _bars(left, here, name, faint)
    _bars(right, [paper[system.label] for system in here], name, faint)
    human = comparison.human.figures.get(name) if comparison.human else None
    for axes, value in ((left, human), (right, paper["Human"].figures[name] if "Human" in paper else None)):
        if value is not None:
            axes.axvline(value, color=PALETTE["human"], linewidth=1.6, linestyle=(0, (4, 2)))
    left.set_yticks(range(len(here)), [system.label for system in here])
    left.invert_yaxis()
    style_axes(left, title="here", x=column(name).title, y="")
    style_axes(right, title="in the paper", x=column(name).title, y="")
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=PALETTE["ink"], fontweight="bold")
    dashed = " Dashed: people." if human is not None else ""
    spread = " Lines: 95% interval over texts." if any(s.intervals for s in here) else ""
    spread = spread or (" Lines: deviation over seeds." if any(s.deviations for s in here) else "")
    return Plot(plot, f"{caption} Compare order and gaps, not values.{dashed}{spread}".strip(), figure)


def _bars(axes: Axes, systems: Sequence[System], name: str, faint: Sequence[bool]) -> None:
    ends = []
    for place, system in enumerate(systems):
        value = system.figures[name]
        colour = PALETTE.get(system.family, PALETTE["other"])
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


def difference_plot(rows: Mapping[str, Mapping[str, Any]], names: Sequence[str], plot: str, title: str) -> Plot | None:
    """What each row gains over MLE, text by text, with its interval: {label: {figure: {"mean", "low", "high"}}}."""
    names = [name for name in names if all(name in row for row in rows.values())]
    if not rows or not names:
        return None
    figure = new_figure(1.9 + 1.7 * len(names), 1.3 + 0.34 * len(rows))
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for place, (label, row) in enumerate(rows.items()):
            colour = PALETTE.get(read_label(label)[0], PALETTE["other"])
            axes.plot([row[name]["low"], row[name]["high"]], [place, place], color=colour, linewidth=2)
            axes.plot([row[name]["mean"]], [place], "o", color=colour, markersize=5)
        axes.axvline(0, color=PALETTE["soft"], linewidth=1)
        style_axes(axes, title="", x=column(name).title, y="")
        axes.tick_params(axis="x", labelsize=8.5)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(range(len(rows)), list(rows))
    panels[0].invert_yaxis()
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=PALETTE["ink"], fontweight="bold")
    caption = (
        "Difference from MLE of the same seeds, text by text. Lines: its 95% bootstrap interval over texts; what "
        "another training would give is not in them."
    )
    return Plot(plot, caption, figure)
