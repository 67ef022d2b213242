"""A curve through the points that were tried: straight between two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from scalegrad.results.comparison.systems import System

Point = tuple[float, float]

LEAST_POINTS = 3  # MLE counted: a straight line from it to one strength says nothing of those in between


def swept(systems: Sequence[System], kind: str, objective: str) -> list[System]:
    """What a curve goes through, weakest first: MLE and the strengths of an objective, or a model and its decodings.

    Without its beginning where that is not there; what has no one strength (a schedule, a beam) lies on no curve.

    >>> rows = [System(objective="sg", strength=0.2), System(objective="sg", strength=0.5), System(objective="mle")]
    >>> [system.label for system in swept(rows, "trained", "sg")]
    ['MLE', 'SG γ=0.5', 'SG γ=0.2']
    """
    start = [s for s in systems if s.kind == "trained" and s.objective == ("mle" if kind == "trained" else objective)][
        :1
    ]
    own = [s for s in systems if (s.kind, s.objective) == (kind, objective) and s.level is not None]
    falls = objective == "sg" or kind == "decoded"  # γ from 1; α rises from 0
    return [*start, *sorted(own, key=lambda system: system.level or 0.0, reverse=falls)]


def point(figures: Mapping[str, float], name: str) -> Point | None:
    """Perplexity and the figure `name`; None where one of them is not there or not finite.

    >>> point({"ppl": 10.0, "rep_1": 0.8}, "rep_1"), point({"ppl": math.inf, "rep_1": 0.8}, "rep_1")
    ((10.0, 0.8), None)
    """
    x, y = figures.get("ppl", math.nan), figures.get(name, math.nan)
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def is_curve(points: Sequence[Point]) -> bool:
    """Are there enough points, counting those once that are the same?

    >>> is_curve([(10.0, 0.8), (11.0, 0.6), (15.0, 0.4)]), is_curve([(10.0, 0.8), (10.0, 0.8), (11.0, 0.6)])
    (True, False)
    """
    return len(set(points)) >= LEAST_POINTS


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
