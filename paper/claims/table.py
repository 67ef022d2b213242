"""The figures a claim is held against: rows by their label, from the paper's tables or from stored results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paper.printed import PaperTable, read_label
from scalegrad.results.comparison.sensitivity import REP_L, mean_rep_l

PAPER_SEEDS = 3  # behind the deviations that the paper prints


class Absent(ValueError):
    """A figure that a criterion needs is not there."""


@dataclass(frozen=True)
class Figures:
    """One row: its figures, their deviations over `runs` seeds, and its place on the curve of an objective.

    `runs` is 0 where seeds play no part: human text, exact results, figures the paper prints without a deviation.
    """

    values: Mapping[str, float]
    deviations: Mapping[str, float] = field(default_factory=dict)
    runs: int = 1
    family: str = ""
    strength: float | None = None  # None: not a point of a curve, but another decoding, a schedule, people
    chosen: bool = False  # the strength that a validation set chose

    def __post_init__(self) -> None:
        for figures in (self.values, self.deviations):  # the mean of the three, as the paper plots it
            if all(name in figures for name in REP_L):
                object.__setattr__(
                    self,
                    "values" if figures is self.values else "deviations",
                    {**figures, "rep_l": mean_rep_l(figures)},
                )


@dataclass(frozen=True)
class FigureTable:
    """Rows by label. Labels that differ in writing alone (a comma, 1 for 1.0, "greedy" said or not) are the same."""

    rows: Mapping[str, Figures]

    def row(self, label: str) -> Figures:
        """The row of a label; "SG chosen" is that of the γ which a validation set chose.

        >>> FigureTable({"UL α=1.0, beam=6": Figures({"rep_1": 0.5})}).row("UL α=1 beam=6").values
        {'rep_1': 0.5}
        >>> FigureTable({"SG γ=0.5": Figures({"rep_1": 0.4}, family="sg", chosen=True)}).row("SG chosen").values
        {'rep_1': 0.4}
        """
        wanted = plain_label(label)
        for name, row in self.rows.items():
            if plain_label(name) == wanted or (row.chosen and wanted == f"{row.family.upper()} chosen"):
                return row
        raise Absent(f"no row {label}")

    def value(self, label: str, column: str) -> float:
        """A figure of a row."""
        return _of(self.row(label).values, label, column)

    def deviation(self, label: str, column: str) -> float:
        """A figure's deviation over seeds."""
        return _of(self.row(label).deviations, label, column, "deviation of ")

    def curve(self, family: str) -> list[str]:
        """Labels of an objective's rows from MLE on, which is γ = 1 and α = 0: the weakest first.

        >>> table = FigureTable({"MLE": Figures({}, family="mle"), "SG γ=0.2": Figures({}, family="sg", strength=0.2)})
        >>> table.curve("sg")
        ['MLE', 'SG γ=0.2']
        """
        ends = {"sg": 1.0, "ul": 0.0}
        if family not in ends:
            raise ValueError(f"a curve is of sg or ul, not {family!r}")
        points = [(row.strength, label) for label, row in self.rows.items() if row.family == family]
        points += [(ends[family], label) for label in self.rows if plain_label(label) == "MLE"]
        ordered = sorted(((s, label) for s, label in points if s is not None), reverse=family == "sg")
        return [label for _, label in ordered]


def _of(figures: Mapping[str, float], label: str, column: str, what: str = "") -> float:
    if figures.get(column) is None:
        raise Absent(f"no {what}{column} in row {label}")
    return figures[column]


def plain_label(label: str) -> str:
    """A label's one way of writing.

    >>> plain_label("SG γ=0.50, greedy"), plain_label("UL α=1.0 top_p=0.3")
    ('SG γ=0.5', 'UL α=1 top_p=0.3')
    """
    words = [word for word in re.split(r"[,\s]+", label) if word and word != "greedy"]
    return re.sub(r"\d+(\.\d+)?", lambda number: f"{float(number[0]):g}", " ".join(words))


def of_paper(table: PaperTable) -> FigureTable:
    """A table of the paper; where it has one strength of an objective, that is the one it chose."""
    rows = {}
    of_family = Counter(read_label(label)[0] for label in table.rows)
    for label, figures in table.rows.items():
        family, strength = read_label(label)
        chosen = strength is not None and of_family[family] == 1
        deviations = table.deviations.get(label, {})
        rows[label] = Figures(figures, deviations, PAPER_SEEDS if deviations else 0, family, strength, chosen)
    return FigureTable(rows)


def of_rows(rows: Sequence[Mapping[str, Any]]) -> FigureTable:
    """Stored rows (`System.as_dict`) without the paper's own; of two with one label the first counts."""
    kept: dict[str, Figures] = {}
    for row in rows:
        if row["kind"] == "paper" or row["label"] in kept:
            continue
        trained = row["kind"] == "trained"
        strength = row.get("strength") if trained else None
        kept[row["label"]] = Figures(
            {name: value for name, value in row["figures"].items() if value is not None},
            _deviations(row),
            0 if row["kind"] == "human" else row.get("runs", 1),
            row.get("family", "") if trained else "",
            strength,
            row.get("chosen", False),
        )
    return FigureTable(kept)


def _deviations(row: Mapping[str, Any]) -> dict[str, float]:
    """Over seeds; of one seed over texts, where the row has 95% intervals, which are 3.92 standard errors wide."""
    if row.get("runs", 1) > 1 or "intervals" not in row:
        return {name: value for name, value in row.get("deviations", {}).items() if value is not None}
    return {name: (high - low) / 3.92 for name, (low, high) in row["intervals"].items()}
