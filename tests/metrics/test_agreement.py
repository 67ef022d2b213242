from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scalegrad.metrics import cohen_kappa, gwet_ac1, krippendorff_alpha, percentage_agreement, win_rate

FOUR_RATERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
DECIMALS = [[0.5, 1.5, 10, 2, 2], [0.5, 2.5, 10, 1.5, 2], [1, 2.5, 9, 2, None]]


def two_raters(both_win: int, both_lose: int, split: int) -> tuple[list[str], list[str]]:
    half = split // 2
    a = ["sg"] * both_win + ["mle"] * both_lose + ["sg"] * half + ["mle"] * (split - half)
    b = ["sg"] * both_win + ["mle"] * both_lose + ["mle"] * half + ["sg"] * (split - half)
    return a, b


@pytest.mark.parametrize(
    ("counts", "wins", "agree", "ac1"),
    [((76, 8, 16), 0.84, 0.84, 0.781), ((60, 19, 21), 0.705, 0.79, 0.640)],
)
def test_the_paper_s_human_evaluation(counts: tuple[int, int, int], wins: float, agree: float, ac1: float) -> None:
    a, b = two_raters(*counts)
    assert win_rate(a + b, "sg") == pytest.approx(wins)
    assert percentage_agreement(a, b) == pytest.approx(agree)
    assert gwet_ac1(a, b) == pytest.approx(ac1, abs=5e-4)


def test_kappa_falls_with_skew_and_ac1_does_not() -> None:
    even, skewed = two_raters(42, 42, 16), two_raters(83, 1, 16)
    assert percentage_agreement(*even) == percentage_agreement(*skewed) == 0.84
    assert cohen_kappa(*even) == pytest.approx(0.68)
    assert cohen_kappa(*skewed) == pytest.approx((0.84 - 0.8362) / (1 - 0.8362))  # p_e = .91² + .09² = .8362
    assert gwet_ac1(*even) == pytest.approx(0.68)
    assert gwet_ac1(*skewed) == pytest.approx((0.84 - 0.1638) / (1 - 0.1638))


# From the package krippendorff 0.9.0.
@pytest.mark.parametrize(
    ("raters", "nominal", "ordinal", "interval"),
    [
        (FOUR_RATERS[:2], 0.8521739130434782, 0.9229024943310657, 0.9427609427609428),
        (FOUR_RATERS, 0.743421052631579, 0.8153875037548814, 0.8491071428571428),
        (DECIMALS, 0.3580246913580247, 0.7915451895043731, 0.9852807971014492),
    ],
)
def test_alpha_against_the_package(raters: list[list[Any]], nominal: float, ordinal: float, interval: float) -> None:
    assert krippendorff_alpha(*raters) == pytest.approx(nominal, abs=1e-12)
    assert krippendorff_alpha(*raters, level="ordinal") == pytest.approx(ordinal, abs=1e-12)
    assert krippendorff_alpha(*raters, level="interval") == pytest.approx(interval, abs=1e-12)


def test_alpha_of_the_paper_s_counts_with_words_as_labels() -> None:
    assert krippendorff_alpha(*two_raters(76, 8, 16)) == pytest.approx(0.40773809523809523, abs=1e-12)


some_raters = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.tuples(*[st.sampled_from(["a", "b", "tie", None])] * n), min_size=1, max_size=12)
)


def pairs_within_items(items: list[tuple[str | None, ...]]) -> list[tuple[str, str, float]]:
    """All ordered pairs of ratings of one item by different raters, each item weighing the same in all."""
    found = []
    for item in items:
        ratings = [label for label in item if label is not None]
        if len(ratings) > 1:
            weight = 1 / (len(ratings) * (len(ratings) - 1))
            found += [(ratings[i], ratings[j], weight) for i, j in permutations(range(len(ratings)), 2)]
    return found


@given(some_raters)
def test_ac1_with_missing_ratings_against_loops(items: list[tuple[str | None, ...]]) -> None:
    pairs = pairs_within_items(items)
    assume(pairs)
    agree = sum(w for a, b, w in pairs if a == b) / sum(w for _, _, w in pairs)
    rated = [[label for label in item if label is not None] for item in items]
    rated = [ratings for ratings in rated if ratings]
    share = Counter[str]()
    for ratings in rated:
        for label in ratings:
            share[label] += 1 / len(ratings) / len(rated)  # type: ignore[assignment]
    chance = sum(p * (1 - p) for p in share.values()) / max(1, len(share) - 1)
    raters = list(zip(*items, strict=True))
    assert percentage_agreement(*raters) == pytest.approx(agree)
    assert gwet_ac1(*raters) == pytest.approx((agree - chance) / (1 - chance))


@given(some_raters)
def test_alpha_against_loops_over_pairs(items: list[tuple[str | None, ...]]) -> None:
    usable = [[label for label in item if label is not None] for item in items]
    usable = [ratings for ratings in usable if len(ratings) > 1]
    everything = [label for ratings in usable for label in ratings]
    assume(len(set(everything)) > 1)
    n = len(everything)
    observed = sum(sum(a != b for a, b in permutations(ratings, 2)) / (len(ratings) - 1) for ratings in usable) / n
    expected = sum(a != b for a, b in permutations(everything, 2)) / (n * (n - 1))
    assert krippendorff_alpha(*zip(*items, strict=True)) == pytest.approx(1 - observed / expected)


@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", None])] * 2), min_size=1, max_size=15))
def test_kappa_against_loops(items: list[tuple[str | None, str | None]]) -> None:
    both = [(a, b) for a, b in items if a is not None and b is not None]
    assume(both)
    chance = sum(a == b for a, _ in both for _, b in both) / len(both) ** 2
    agree = sum(a == b for a, b in both) / len(both)
    expected = (agree - chance) / (1 - chance) if chance < 1 else math.nan
    assert cohen_kappa(*zip(*items, strict=True)) == pytest.approx(expected, nan_ok=True)


def test_named_categories_count_though_never_chosen() -> None:
    a, b = two_raters(76, 8, 16)
    expected = (0.84 - 0.2688 / 2) / (1 - 0.2688 / 2)
    assert gwet_ac1(a, b, categories=("sg", "mle", "tie")) == pytest.approx(expected)


def test_perfect_agreement_on_one_label() -> None:
    assert gwet_ac1(["a", "a"], ["a", "a"]) == 1
    assert math.isnan(cohen_kappa(["a", "a"], ["a", "a"]))
    assert math.isnan(krippendorff_alpha(["a", "a"], ["a", "a"]))


def test_nan_is_a_missing_rating() -> None:
    assert percentage_agreement([1.0, math.nan], [1.0, 2.0]) == 1
    assert win_rate([math.nan, "sg"], "sg") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gwet_ac1(["a"]), "raters must be two or more, not 1"),
        (lambda: gwet_ac1(["a"], ["a", "b"]), r"they rate \[1, 2\]"),
        (lambda: gwet_ac1(["a"], [None]), "raters must share at least one item"),
        (lambda: krippendorff_alpha(["a"], [None]), "raters must share at least one item"),
        (lambda: gwet_ac1(["a"], ["c"], categories=["a", "b"]), r"must use the categories \['a', 'b'\], not 'c'"),
        (lambda: krippendorff_alpha(["a"], ["b"], level="interval"), "raters must give numbers for level='interval'"),
        (lambda: krippendorff_alpha([1], [2], level="ratio"), "not 'ratio'"),
        (lambda: win_rate([], "sg"), "votes must hold at least one vote"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
