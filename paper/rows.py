"""What the experiments do with rows: filter them, set the paper's beside them, tell lengths apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scalegrad.runs import Row


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
