"""Which of several strengths of an objective a validation set chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scalegrad.results.comparison.columns import column
from scalegrad.results.comparison.systems import Comparison, System
from scalegrad.results.frame import over_seeds, to_rows

if TYPE_CHECKING:
    from pandas import DataFrame


def choose_strengths(comparison: Comparison, data: DataFrame, metric: str) -> Comparison:
    """The comparison with the chosen system of each objective and decoding marked, and a note on each choice.

    Chosen is the strength with the highest mean of `metric` over seeds, of equal ones the smallest; `data` has rows of
    it for the validation split alone. An objective with one strength has no choice.

    >>> from scalegrad.results.comparison import compare
    >>> from scalegrad.results.frame import frame
    >>> from scalegrad.runs import Row
    >>> rows = [Row("cider", value, objective="sg", strength=g, corpus="c", split="test", decoding="greedy", seed=0)
    ...         for g, value in ((0.2, 8.0), (0.5, 9.0))]
    >>> valid = [replace(row, split="valid", value=10 * row.strength) for row in rows]
    >>> shown = choose_strengths(compare(frame(rows)), frame(valid), "cider")
    >>> shown.notes, [system.strength for system in shown.systems if system.chosen]
    (['The validation set chooses SG γ=0.5: CIDEr 5.00 there; SG γ=0.2 2.00.'], [0.5])
    """
    means = to_rows(over_seeds(data[data["metric"] == metric]))
    scores = {(row.objective, row.strength, row.decoding, row.penalty): row.value for row in means}
    groups: dict[tuple[str | None, ...], list[tuple[float, System]]] = {}
    for system in comparison.of_kind("trained", "decoded"):
        score = scores.get((system.objective, system.strength, system.decoding, system.penalty))
        if score is not None:
            groups.setdefault((system.objective, system.decoding, system.penalty), []).append((score, system))
    notes, chosen = [], []
    for group in groups.values():
        if len(group) > 1:
            (score, first), *others = sorted(group, key=_order)
            rest = ", ".join(f"{system.label} {other:.2f}" for other, system in others)
            notes.append(f"The validation set chooses {first.label}: {column(metric).title} {score:.2f} there; {rest}.")
            chosen.append(first.key)
    systems = [replace(system, chosen=True) if system.key in chosen else system for system in comparison.systems]
    return replace(comparison, systems=systems, notes=[*comparison.notes, *notes])


def _order(scored: tuple[float, System]) -> tuple[float, float]:
    score, system = scored
    return -score, system.strength if isinstance(system.strength, float) else 0.0
