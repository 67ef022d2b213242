"""Is a difference real? Bootstrap intervals and permutation tests, by text, and intervals over raters and texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Items = Sequence[Any] | NDArray[Any]
Statistic = Callable[[Any], float]

# Numbers drawn at once: 32 MiB of indices.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval that covers it at `level`."""

    estimate: float
    low: float
    high: float
    level: float


@dataclass(frozen=True)
class PermutationTest:
    """A difference of two systems, and how often chance alone gives one as large, to either side."""

    difference: float
    p_value: float


def mean(values: Floats) -> float:
    """The mean of the values that are numbers: a text too short for a figure (NaN) takes no part.

    >>> mean(np.array([1.0, np.nan, 2.0]))
    1.5
    """
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else float("nan")


def bootstrap(
    items: Items, statistic: Statistic = mean, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """A percentile bootstrap interval of `statistic` over items (one a text), drawn again with replacement.

    `items` are numbers [texts], for which the default statistic is the mean, or anything else in a list or array that
    `statistic` takes whole: texts, (prediction, reference) pairs, … A figure that counts distinct things over the set
    (uniq-w) has no honest interval of this kind, for drawing with replacement says texts twice.

    >>> interval = bootstrap([0.0, 1.0, 0.0, 1.0] * 25)  # mean ½, standard error ½/√100
    >>> interval.estimate, round(interval.low, 1), round(interval.high, 1)
    (0.5, 0.4, 0.6)
    """
    items = _checked("items", items)
    _check_options(level, resamples)
    draws = _draw(np.random.default_rng(seed), len(items), resamples)
    values = [value for index in draws for value in _apply(statistic, items, index)]
    return _interval(_once(statistic, items), np.array(values), level)


def paired_bootstrap(
    a: Items, b: Items, statistic: Statistic = mean, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """A percentile bootstrap interval of statistic(a) − statistic(b), where a[i] and b[i] are drawn together.

    >>> paired_bootstrap([2.0, 3.0, 5.0, 8.0], [1.0, 2.0, 4.0, 7.0])  # b is one less everywhere, whatever is drawn
    Interval(estimate=1.0, low=1.0, high=1.0, level=0.95)
    """
    a, b = _checked_pair(a, b)
    _check_options(level, resamples)
    values: list[float] = []
    for index in _draw(np.random.default_rng(seed), len(a), resamples):
        values += (np.array(_apply(statistic, a, index)) - np.array(_apply(statistic, b, index))).tolist()
    return _interval(_once(statistic, a) - _once(statistic, b), np.array(values), level)


def crossed_interval(values: Floats, level: float = 0.95) -> Interval:
    """An interval of the mean of `values` [raters, texts] for other raters and other texts; NaN is a missing value.

    Both are samples, so the squared standard errors of the mean over raters and over texts add up, and Student's t has
    the degrees of freedom of Welch and Satterthwaite. The noise of single values is in both errors: the interval is
    rather wide than narrow. A single rater says nothing about others, and then only texts count.

    >>> interval = crossed_interval(np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0]]))  # 3.182 · √(2/64)
    >>> interval.estimate, round(interval.low, 3), round(interval.high, 3)
    (0.625, 0.062, 1.188)
    """
    _check_options(level, 1)
    present = ~np.isnan(values)
    if values.ndim != 2 or not present.any():
        raise ValueError(f"values must be a table [raters, texts] with at least one number; it is {values.shape}")
    estimate = float(values[present].mean())
    distance = np.where(present, values - estimate, 0.0)
    variances, freedoms = [], []
    for axis in (0, 1):
        totals = distance.sum(axis)[present.any(axis)]
        if len(totals) > 1:
            variances.append(len(totals) / (len(totals) - 1) * float(totals @ totals) / int(present.sum()) ** 2)
            freedoms.append(len(totals) - 1)
    variance = sum(variances)
    if not variances:  # one value has no spread
        return Interval(estimate, -math.inf, math.inf, level)
    if variance == 0:
        return Interval(estimate, estimate, estimate, level)
    freedom = variance**2 / sum(part**2 / own for part, own in zip(variances, freedoms, strict=True))
    half = _student(level, freedom) * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half, level)


def _student(level: float, freedom: float) -> float:
    """The number that Student's t stays below in absolute value with the chance `level`.

    >>> [round(_student(0.95, freedom), 3) for freedom in (1, 2, 9, 1000)]
    [12.706, 4.303, 2.262, 1.962]
    """
    # With t = √freedom · tan(angle), the density of the angle is proportional to cos(angle)^(freedom − 1).
    angle = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos(angle) ** (freedom - 1)
    chance = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(freedom) * math.tan(float(np.interp(level, chance / chance[-1], angle)))


def permutation_test(
    a: Items, b: Items, statistic: Statistic = mean, resamples: int = 10_000, seed: int = 0
) -> PermutationTest:
    """A paired permutation test of statistic(a) − statistic(b) = 0, to both sides.

    If the systems were alike, swapping a[i] with b[i] would change nothing. Each resample swaps every pair with chance
    ½; p = (1 + resamples with a difference as large) / (1 + resamples).

    >>> permutation_test([1.0] * 20, [0.0] * 20).p_value < 0.001  # only 2 of 2²⁰ swaps are as extreme
    True
    >>> permutation_test([1.0, 0.0], [0.0, 1.0])
    PermutationTest(difference=0.0, p_value=1.0)
    """
    a, b = _checked_pair(a, b)
    _check_options(0.95, resamples)
    both = _joined(a, b)
    difference = _once(statistic, a) - _once(statistic, b)
    generator = np.random.default_rng(seed)
    first = np.arange(len(a))
    as_large = 0
    for rows in _blocks(len(a), resamples):
        swap = generator.integers(0, 2, (rows, len(a))) * len(a)
        one = np.array(_apply(statistic, both, first + swap))
        other = np.array(_apply(statistic, both, first + len(a) - swap))
        # What differs from the observed figure by rounding alone is as large as it.
        as_large += int((np.abs(one - other) >= abs(difference) * (1 - 1e-9) - 1e-12).sum())
    return PermutationTest(difference, (1 + as_large) / (1 + resamples))


def _joined(a: Items, b: Items) -> Items:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.concatenate([a, b])
    return [*a, *b]


def _blocks(size: int, resamples: int) -> Iterator[int]:
    """How many resamples to draw at a time, so that memory stays bounded."""
    rows = max(1, _BLOCK // size)
    for start in range(0, resamples, rows):
        yield min(rows, resamples - start)


def _draw(generator: np.random.Generator, size: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    for rows in _blocks(size, resamples):
        yield generator.integers(0, size, (rows, size))


def _apply(statistic: Statistic, items: Items, index: NDArray[np.int64]) -> list[float]:
    """The statistic of each row of `index` [resamples, texts] into `items`; means are taken all at once."""
    if isinstance(items, np.ndarray):
        if statistic is mean and items.ndim == 1:
            kept = ~np.isnan(items)
            totals = np.where(kept, items, 0.0)[index].sum(axis=1)
            counts = kept[index].sum(axis=1) if not kept.all() else np.full(len(index), index.shape[1])
            means = np.divide(totals, counts, out=np.full(len(index), np.nan), where=counts > 0)
            return [float(value) for value in means]
        return [float(statistic(items[row])) for row in index]
    return [float(statistic([items[i] for i in row])) for row in index.tolist()]


def _once(statistic: Statistic, items: Items) -> float:
    return _apply(statistic, items, np.arange(len(items))[None])[0]


def _interval(estimate: float, values: Floats, level: float) -> Interval:
    values = values[~np.isnan(values)]
    if not len(values):
        return Interval(estimate, float("nan"), float("nan"), level)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), level)


def _checked(name: str, items: Items) -> Items:
    """Numbers become an array (so that means are fast); anything else stays as it is."""
    if isinstance(items, str) or not hasattr(items, "__len__") or not hasattr(items, "__getitem__"):
        raise ValueError(f"{name} must be a list or an array with one item a text, not {type(items).__name__}")
    if len(items) == 0:
        raise ValueError(f"{name} must hold at least one item; it is empty")
    if not isinstance(items, np.ndarray) and all(isinstance(item, int | float) for item in items):
        return np.array(items, np.float64)
    return items


def _checked_pair(a: Items, b: Items) -> tuple[Items, Items]:
    a, b = _checked("a", a), _checked("b", b)
    if len(a) != len(b):
        raise ValueError(f"a and b must have one item for the same texts each; they have {len(a)} and {len(b)}")
    return a, b


def _check_options(level: float, resamples: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
