"""The paper's own study (table "Human evaluation results for auto-completion"), to be printed beside."""

from __future__ import annotations

from typing import NamedTuple


class PaperRow(NamedTuple):
    """One row: two raters, 100 prefixes."""

    a: str
    b: str
    win_rate: float
    agreement: float
    ac1: float


PAPER = (PaperRow("SG", "MLE", 0.840, 0.840, 0.78), PaperRow("SG", "UL", 0.705, 0.790, 0.64))
