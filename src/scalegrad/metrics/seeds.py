"""Several runs of one experiment that differ by their seed: mean and deviation of each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Mean over runs and the sample standard deviation (n − 1 below the line); None where one run cannot tell."""

    mean: float
    deviation: float | None
    runs: int


def over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Mean and deviation of every figure that all runs have.

    >>> found = over_seeds([{"ppl": 13.0, "rep_1": 0.5}, {"ppl": 14.0}, {"ppl": 15.0, "rep_1": 0.7}])
    >>> found
    {'ppl': Spread(mean=14.0, deviation=1.0, runs=3)}
    >>> over_seeds([{"ppl": 13.0}])["ppl"].deviation is None
    True
    """
    if not runs:
        raise ValueError("runs is empty; expected the figures of at least one run")
    found = {}
    for name in runs[0]:
        if all(name in run for run in runs):
            values = np.array([run[name] for run in runs], dtype=np.float64)
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            found[name] = Spread(float(values.mean()), deviation, len(values))
    return found
