"""The figures a claim is held against: rows by their label, from the paper's tables or from stored results."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper.claims.figures import Figure, computed
from paper.printed import PaperTable, read_label
from scalegrad.results.comparison.curve import LEAST_POINTS, is_curve, swept, where
from scalegrad.results.comparison.sensitivity import REP_L, mean_rep_l
from scalegrad.results.comparison.systems import System

PAPER_SEEDS = 3  # behind the deviations that the paper prints


class Absent(ValueError):
    """A figure that a claim needs is not there."""


@dataclass(frozen=True)
class Table:
    """Rows with their figures; `runs` is 0 where seeds play no part."""

    rows: Sequence[System]

    def row(self, label: str) -> System:
        """The first there is of several labels ("a or b"); "SG chosen" has the γ that a validation set chose."""
        for wanted in map(plain_label, label.split(" or ")):
            for row in self.rows:
                if plain_label(row.label) == wanted or (row.chosen and f"{row.family.upper()} chosen" == wanted):
                    return row
        raise Absent(f"no row {label}")

    def __call__(self, label: str, column: str) -> Figure:
        """A figure with its standard error."""
        row = self.row(label)
        if (value := _value(row.figures, column)) is None:
            raise Absent(f"no {column} in row {label}")
        seeds = 0 if row.kind == "human" else row.runs
        error = (_value(_deviations(row), column) or 0.0) / math.sqrt(max(seeds, 1))
        return Figure(f"{column}({row.label})", value, {(row.label, column, seeds): (value + error, value - error)})

    def deviation(self, label: str, column: str) -> Figure:
        """A figure's deviation over seeds, which has no error of its own."""
        if (value := _value(_deviations(self.row(label)), column)) is None:
            raise Absent(f"no deviation of {column} in row {label}")
        return Figure(f"deviation of {column}({label})", value)

    def along(self, family: str, column: str, by: str, at: Figure) -> Figure:
        """A column where `by` is `at`, straight between the points of an objective's curve, of which MLE is the end."""

        def between(x: float, *numbers: float) -> float:
            curve = list(zip(numbers[::2], numbers[1::2], strict=True))
            place = where(curve, x, on=0) if is_curve(curve) else None
            return math.nan if place is None else place

        points = [self(row.label, name) for row in swept(self.rows, "trained", family) for name in (by, column)]
        result = computed(f"{column}({family.upper()} where {by} is {{}})", between, at, *points)
        if math.isnan(result.value):
            here = f"{family.upper()}'s curve (points: {len(points) // 2})"
            raise Absent(f"no {by} {at.value:.4g} on {here}; a curve takes {LEAST_POINTS} different ones")
        return result


def of_paper(table: PaperTable) -> Table:
    """A table of the paper; where it has one strength of an objective, that is the one it chose."""
    objectives = {label: read_label(label) for label in table.rows}
    rows_of = Counter(family for family, _ in objectives.values())
    rows = []
    for label, (family, strength) in objectives.items():
        deviations, chosen = table.deviations.get(label, {}), strength is not None and rows_of[family] == 1
        runs = PAPER_SEEDS if deviations else 0
        rows.append(System(label, table.rows[label], "trained", family, strength, deviations, runs=runs, chosen=chosen))
    return Table(rows)


def plain_label(label: str) -> str:
    """A label's one way of writing: without commas, "greedy" and zeros at the end of a number."""
    words = [word for word in re.split(r"[,\s]+", label) if word and word != "greedy"]
    return re.sub(r"\d+(\.\d+)?", lambda number: f"{float(number[0]):g}", " ".join(words))


def _value(figures: Mapping[str, float], column: str) -> float | None:
    """A figure, or the mean that the paper plots as Rep/l."""
    if column == "rep_l" and all(figures.get(name) is not None for name in REP_L):
        return mean_rep_l(figures)
    return figures.get(column)


def _deviations(row: System) -> Mapping[str, float]:
    """Over seeds; of one seed over texts, where the row has 95% intervals, which are 3.92 standard errors wide."""
    if row.runs > 1 or not row.intervals:
        return row.deviations
    return {name: (high - low) / 3.92 for name, (low, high) in row.intervals.items()}
