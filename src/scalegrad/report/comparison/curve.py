"""A curve through the points that were tried: straight between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Point = tuple[float, float]


def where(points: Sequence[Point], at: float, *, on: int) -> float | None:
    """The other coordinate where a curve first comes to `at` of coordinate `on`, 0 or 1; None where it never does.

    >>> curve = [(10.0, 0.8), (11.0, 0.6), (15.0, 0.4)]
    >>> where(curve, 0.5, on=1), where(curve, 10.5, on=0), where(curve, 0.3, on=1)
    (13.0, 0.7, None)
    """
    for before, after in pairwise(points):
        low, high = sorted((before[on], after[on]))
        if low <= at <= high:
            share = 0.0 if before[on] == after[on] else (at - before[on]) / (after[on] - before[on])
            other = 1 - on
            return round(before[other] + share * (after[other] - before[other]), 12)
    return None
