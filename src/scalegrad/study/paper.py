"""The paper's own study (table 3, "Human evaluation results for auto-completion"), to be printed beside."""

from __future__ import annotations

from typing import NamedTuple

from scalegrad.report.paper import TABLES


class PaperRow(NamedTuple):
    """One row: two raters, 100 prefixes."""

    a: str
    b: str
    win_rate: float
    agreement: float
    ac1: float


PAPER = tuple(
    PaperRow(label.split()[0], label.split()[-1], row["win_rate"], row["agreement"], row["ac1"])
    for label, row in TABLES["human evaluation"].rows.items()
)
