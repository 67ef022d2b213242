"""The figures a claim is held against: rows by their fields, from the paper's tables or from stored results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paper.claims.figures import Figure, computed
from paper.printed import SEEDS
from scalegrad.results.comparison import System, compare
from scalegrad.results.comparison.curve import LEAST_POINTS, is_curve, swept, where
from scalegrad.results.comparison.sensitivity import REP_L, mean_rep_l
from scalegrad.results.frame import frame
from scalegrad.runs import Row


class Absent(ValueError):
    """A figure that a claim needs is not there."""


@dataclass(frozen=True)
class Key:
    """A row by its fields. `decoding` None is the first that the model has; `name` is of a row that is no model.

    `chosen` stands for the strength that a validation set chose.
    """

    objective: str = ""
    strength: float | None = None
    decoding: str | None = None
    penalty: str | None = None
    chosen: bool = False
    name: str = ""

    def __str__(self) -> str:
        if self.chosen:
            return f"{self.objective.upper()} chosen"
        return System(self.name, {}, "", self.objective, self.strength, self.decoding, self.penalty).label

    def fits(self, row: System) -> bool:
        """Is this the row?"""
        same = (row.name, row.objective, row.penalty) == (self.name, self.objective, self.penalty)
        as_strong = row.chosen if self.chosen else row.strength == self.strength
        return same and as_strong and self.decoding in (None, row.decoding)


@dataclass(frozen=True)
class Table:
    """Rows with their figures; `runs` is 0 where seeds play no part."""

    rows: Sequence[System]

    def row(self, key: Key) -> System:
        """The first row that fits."""
        if row := next(filter(key.fits, self.rows), None):
            return row
        raise Absent(f"no row {key}")

    def __call__(self, key: Key, column: str) -> Figure:
        """A figure with its standard error."""
        return self._figure(self.row(key), column)

    def _figure(self, row: System, column: str) -> Figure:
        if (value := _value(row.figures, column)) is None:
            raise Absent(f"no {column} in row {row.label}")
        seeds = 0 if row.kind == "human" else row.runs
        error = (_value(_deviations(row), column) or 0.0) / math.sqrt(max(seeds, 1))
        return Figure(f"{column}({row.label})", value, {(row.label, column, seeds): (value + error, value - error)})

    def deviation(self, key: Key, column: str) -> Figure:
        """A figure's deviation over seeds, which has no error of its own."""
        row = self.row(key)
        if (value := _value(_deviations(row), column)) is None:
            raise Absent(f"no deviation of {column} in row {row.label}")
        return Figure(f"deviation of {column}({row.label})", value)

    def along(self, objective: str, column: str, by: str, at: Figure) -> Figure:
        """A column where `by` is `at`, straight between the points of an objective's curve, of which MLE is the end."""

        def between(x: float, *numbers: float) -> float:
            curve = list(zip(numbers[::2], numbers[1::2], strict=True))
            place = where(curve, x, on=0) if is_curve(curve) else None
            return math.nan if place is None else place

        points = [self._figure(row, name) for row in swept(self.rows, "trained", objective) for name in (by, column)]
        result = computed(f"{column}({objective.upper()} where {by} is {{}})", between, at, *points)
        if math.isnan(result.value):
            here = f"{objective.upper()}'s curve (points: {len(points) // 2})"
            raise Absent(f"no {by} {at.value:.4g} on {here}; a curve takes {LEAST_POINTS} different ones")
        return result


def of_paper(rows: Sequence[Row]) -> Table:
    """Rows that the paper prints."""
    systems = compare(frame(replace(row, run=None) for row in rows)).systems
    return Table(with_only_strengths([replace(row, runs=SEEDS if row.deviations else 0) for row in systems]))


def with_only_strengths(systems: Sequence[System]) -> list[System]:
    """Where an objective has one strength, that is the one chosen."""
    strengths = {(row.objective, row.strength) for row in systems if row.strength is not None}
    count = Counter(objective for objective, _ in strengths)
    return [replace(row, chosen=row.chosen or count[row.objective] == 1) for row in systems]


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
