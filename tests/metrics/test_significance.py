from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from scalegrad import metrics
from scalegrad.metrics import bootstrap, paired_bootstrap, permutation_test


def test_interval_of_a_mean_is_that_of_the_normal_law() -> None:
    values = np.random.default_rng(3).exponential(size=900)
    interval = bootstrap(values, resamples=4000)
    error = values.std() / math.sqrt(len(values))
    assert interval.estimate == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for seed in range(300):
        a = generator.normal(size=60)
        b = 0.3 + 0.5 * a + generator.normal(size=60)
        interval = paired_bootstrap(a, b, level=0.9, resamples=400, seed=seed)
        covered += interval.low <= -0.3 <= interval.high
    assert 0.85 <= covered / 300 <= 0.94


def test_pairing_narrows_the_interval() -> None:
    generator = np.random.default_rng(1)
    a = generator.normal(size=200)
    b = a + 0.01 * generator.normal(size=200)
    interval = paired_bootstrap(a, b)
    assert interval.high - interval.low < 0.005


def test_means_at_once_are_means_one_by_one() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.normal(size=(2, 30))
    a[3] = b[7] = np.nan

    def one_by_one(values: np.ndarray) -> float:
        kept = [value for value in values if not math.isnan(value)]
        return sum(kept) / len(kept)

    for fast, slow in (
        (paired_bootstrap(a, b, seed=5), paired_bootstrap(a, b, one_by_one, seed=5)),
        (bootstrap(a, seed=6), bootstrap(a, one_by_one, seed=6)),
    ):
        assert (fast.estimate, fast.low, fast.high) == pytest.approx((slow.estimate, slow.low, slow.high))
    fast_test, slow_test = permutation_test(a, b, resamples=500), permutation_test(a, b, one_by_one, resamples=500)
    assert fast_test.p_value == slow_test.p_value


def test_permutation_test_against_every_swap() -> None:
    a, b = np.array([3.0, 1, 4, 1, 5, 9, 2, 6]), np.array([2.0, 0, 5, 1, 3, 5, 1, 6])
    d = a - b
    extreme = [abs(np.dot(signs, d)) >= abs(d.sum()) for signs in product((-1, 1), repeat=8)]
    test = permutation_test(a, b, resamples=20_000)
    assert test.difference == pytest.approx(d.mean())
    assert test.p_value == pytest.approx(np.mean(extreme), abs=0.01)


def test_any_statistic_of_texts() -> None:
    varied = [f"one{i} two{i} three{i} four{i}" for i in range(12)]
    looping = ["one two one two"] * 12

    def uniq(texts: list[str]) -> float:
        return metrics.repetition(texts)["uniq_w"]

    test = permutation_test(varied, looping, uniq, resamples=300)
    assert test.difference == 46
    # 46 or −46 comes only from swapping none or all: 2 of 4,096 ways.
    assert test.p_value == pytest.approx(1 / 301)
    rep = paired_bootstrap(looping, varied, lambda texts: metrics.repetition(texts)["rep_1"], resamples=50)
    assert (rep.estimate, rep.low, rep.high) == (0.5, 0.5, 0.5)


def test_a_seed_repeats_and_another_differs() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1) != bootstrap(values, seed=2)


def test_nothing_but_missing_values() -> None:
    interval = bootstrap([math.nan, math.nan])
    assert [math.isnan(x) for x in (interval.estimate, interval.low, interval.high)] == [True] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap([]), "items must hold at least one item; it is empty"),
        (lambda: bootstrap("text"), "items must be a list or an array with one item a text, not str"),
        (lambda: bootstrap([1.0], level=95), "level must lie between 0 and 1, not 95"),
        (lambda: bootstrap([1.0], resamples=0), "resamples must be at least 1, not 0"),
        (lambda: paired_bootstrap([1.0], [1.0, 2.0]), "they have 1 and 2"),
        (lambda: permutation_test([1.0], [1.0, 2.0]), "they have 1 and 2"),
    ],
)
def test_bad_arguments_are_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
