"""Summarisers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalegrad.results.comparison import Comparison, compare
from scalegrad.results.comparison.strengths import choose_strengths
from scalegrad.results.frame import load
from scalegrad.tasks.summarization.evaluation import CHOICE, VALIDATION

if TYPE_CHECKING:
    from scalegrad.runs import Run


def compare_summaries(runs: Sequence[Run], corpus: str) -> Comparison:
    """Evaluated runs side by side on `corpus`, with the strengths that the validation set chooses."""
    data = load([run.path for run in runs])
    valid = data[(data["corpus"] == corpus) & (data["split"] == VALIDATION)]
    return choose_strengths(compare(data, corpus, "test", runs=runs), valid, CHOICE)
