"""What the experiments do with rows: filter them, set the paper's beside them, tell lengths apart, choose strengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scalegrad.runs import Row

VALIDATION_SCORE = "rouge_mean"  # of the validation set, by which β and strengths are chosen


def beside(rows: Iterable[Row], corpus: str | None, split: str | None) -> list[Row]:
    """The paper's rows of another corpus, to stand in one comparison with rows of this one."""
    return [replace(row, corpus=corpus, split=split) for row in rows]


def with_metrics(rows: Iterable[Row], metrics: Sequence[str]) -> list[Row]:
    """The rows of these metrics, in their order."""
    return sorted((row for row in rows if row.metric in metrics), key=lambda row: metrics.index(row.metric))


def by_length(rows: Sequence[Row]) -> list[Row]:
    """Where texts have several lengths, a metric of its own for each length.

    >>> [row.metric for row in by_length([Row("rep_1", 0.6, new_tokens=50), Row("rep_1", 0.8, new_tokens=100)])]
    ['rep_1_at_50', 'rep_1_at_100']
    """
    if len({row.new_tokens for row in rows} - {None}) < 2:
        return list(rows)
    return [replace(row, metric=f"{row.metric}_at_{row.new_tokens}", new_tokens=None) for row in rows]


def chosen_strengths(rows: Iterable[Row]) -> set[tuple[str | None, str | None, float | str | None]]:
    """(corpus, objective, strength) of each objective's strength with the best score on the validation set.

    Every strength is tried with the first seed, at its own best β.

    >>> def score(strength, value, decoding="beam=5"):
    ...     return Row("rouge_mean", value, objective="sg", strength=strength, split="valid", decoding=decoding, seed=0)
    >>> chosen_strengths([score(0.2, 19.0), score(0.2, 22.0, "beam=5,gnmt=1.0"), score(0.8, 20.0)])
    {(None, 'sg', 0.2)}
    """
    best: dict[tuple[str | None, str | None], Row] = {}
    for row in rows:
        if row.metric == VALIDATION_SCORE and row.seed == 0 and row.strength is not None and row.value is not None:
            first = best.setdefault((row.corpus, row.objective), row)
            if row.value > (first.value or 0.0):
                best[row.corpus, row.objective] = row
    return {(row.corpus, row.objective, row.strength) for row in best.values()}
