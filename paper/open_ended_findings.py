"""What the open-ended figures say, a sentence each; "" where the rows that it takes are not all there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from scalegrad import objectives
from scalegrad.lab.trade_off import curves_of
from scalegrad.results.comparison import Comparison
from scalegrad.results.comparison.columns import column, written


def in_order(comparison: Comparison, names: Sequence[str]) -> str:
    """Whether MLE, UL and SG repeat less and less, each by more than the deviations, column by column."""
    rows = {s.label: s for s in comparison.of_kind("trained")}
    three = [rows[label] for label in (objectives.parse(name).label for name in names) if label in rows]
    if len(three) < len(names) or any("ppl" not in row.figures for row in three):
        return ""
    yes: list[str] = []
    no: list[str] = []
    for name, sign in (("rep_window_128", 1), ("rep_1", 1), ("rep_2", 1), ("rep_3", 1), ("uniq", -1), ("uniq_w", -1)):
        if all(name in row.figures for row in three):
            gaps = [sign * (a.figures[name] - b.figures[name]) for a, b in pairwise(three)]
            spread = max(row.deviations.get(name, 0.0) for row in three)
            (yes if min(gaps) > spread else no).append(column(name).title)
    several = all(row.runs > 1 for row in three)
    seeds = "more than the deviation over seeds" if several else "one seed of some, so without its deviation"
    told = f"{', '.join(r.label for r in reversed(three))} stand in this order from least to most repetitive ({seeds})"
    text = f"{told} in {', '.join(yes) or 'no column'}"
    text += f", and not in {', '.join(no)}" if no else ""
    perplexities = ", ".join(f"{row.label} {written('ppl', row.figures['ppl'])}" for row in three)
    return f"{text}; perplexity: {perplexities}."


def along_gamma(comparison: Comparison, name: str) -> str:
    """Whether a figure rises or falls with γ over the ScaleGrad models, and its ends."""
    swept = [s for s in reversed(curves_of(comparison).scale_grad) if s.family == "sg" and name in s.figures]
    if len(swept) < 2:
        return ""
    values = [s.figures[name] for s in swept]
    rises = all(a <= b for a, b in pairwise(values))
    falls = all(a >= b for a, b in pairwise(values))
    how = "stays the same" if rises and falls else "rises" if rises else "falls" if falls else "goes up and down"
    ends = (
        f"{written(name, values[0])} at γ={swept[0].strength:g}, {written(name, values[-1])} at {swept[-1].strength:g}"
    )
    return f"{column(name).title} {how} with γ: {ends}."
