"""What a study says: win rates with intervals, agreement of the raters, and whether the answers can be trusted."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from scalegrad.metrics.agreement import cohen_kappa, gwet_ac1, krippendorff_alpha, percentage_agreement, win_rate
from scalegrad.metrics.significance import Interval, crossed_interval
from scalegrad.study.answers import Answer
from scalegrad.study.design import CHECK, Study
from scalegrad.study.votes import TIE, Vote, votes_of

_MOST_FOR_KAPPA = 30
_ENOUGH_RATERS = 10
# How often 95% intervals hold the truth, by the number of raters. `tests/study/test_analysis.py` simulates it: 100
# prefixes, and chances with a standard deviation of 15 points between raters and as much between prefixes.
COVERAGE = {2: 0.88, 3: 0.92, 5: 0.94, 10: 0.96}


@dataclass(frozen=True)
class SignTest:
    """How many prefixes most raters gave to each side, and how likely a split this uneven is if neither is better.

    Prefixes on which the raters are divided equally take no part. `p_value` is exact and to both sides.
    """

    for_a: int
    for_b: int
    divided: int
    p_value: float


@dataclass(frozen=True)
class PairFigures:
    """System `a` against system `b`. `win_rate` is a's share of all votes, a tie counting half to each.

    The interval is for other raters and other prefixes; with one rater it is for other prefixes alone.
    Agreement is NaN with one rater. Cohen's kappa is the mean over pairs of raters, and NaN with more than 30 raters,
    where that takes long and comes out as alpha does.
    """

    a: str
    b: str
    wins_a: int
    wins_b: int
    ties: int
    prefixes: int
    win_rate: Interval
    agreement: float
    ac1: float
    kappa: float
    alpha: float
    sign_test: SignTest

    @property
    def votes(self) -> int:
        """How many votes were cast."""
        return self.wins_a + self.wins_b + self.ties


@dataclass(frozen=True)
class RaterFigures:
    """One rater: how far, how attentive, how consistent, how fast. `win_rates["sg over mle"]` is their own.

    `first_share` is how often the text shown first was chosen, ties left out; sides were balanced, so ½ is unbiased.
    """

    rater: str
    english: str | None
    answered: int
    asked: int
    checks: int
    checks_failed: int
    repeats: int
    repeats_alike: int
    first_share: float
    seconds: float
    win_rates: dict[str, float]
    left_out: bool


@dataclass(frozen=True)
class PositionBias:
    """How often the text shown first was chosen, over all raters, and how likely that is without bias."""

    first: int
    second: int
    p_value: float

    @property
    def share(self) -> float:
        """The share of the first."""
        return self.first / (self.first + self.second) if self.first + self.second else math.nan


@dataclass(frozen=True)
class Analysis:
    """All figures of a study. A pair without votes yet is not in `pairs`; `notes` say what to bear in mind."""

    title: str
    answered: int
    asked: int
    level: float
    pairs: tuple[PairFigures, ...]
    raters: tuple[RaterFigures, ...]
    position: PositionBias
    comments: int
    notes: tuple[str, ...]


def analyse(
    study: Study,
    answers: Iterable[Answer],
    english: Mapping[str, str | None] | None = None,
    most_failed: int | None = None,
    level: float = 0.95,
) -> Analysis:
    """Work out all figures of a study from the answers so far.

    Checks and repeats count for the raters' figures only. `most_failed` leaves raters who failed more checks than
    that out of the figures of pairs and of position.
    """
    if most_failed is not None and most_failed < 0:
        raise ValueError(f"most_failed must be 0 or more, not {most_failed}")
    if not 0 < level < 1:
        raise ValueError(f"level must be a share between 0 and 1, not {level:g}")
    votes = votes_of(study, answers)
    by_rater: dict[str, list[Vote]] = {rater: [] for rater in study.sheets}
    for vote in votes:
        by_rater[vote.rater].append(vote)
    raters = [
        _rater_figures(study, rater, mine, (english or {}).get(rater), most_failed) for rater, mine in by_rater.items()
    ]
    trusted = [figures.rater for figures in raters if not figures.left_out]
    counted = [vote for rater in trusted for vote in by_rater[rater]]
    pairs = [
        _pair_figures(pair, trusted, cast, study.ties, level)
        for pair in study.pairs
        if (cast := [vote for vote in counted if vote.kind == "pair" and vote.systems == pair])
    ]
    return Analysis(
        title=study.title,
        answered=len(votes),
        asked=sum(map(len, study.sheets.values())),
        level=level,
        pairs=tuple(pairs),
        raters=tuple(raters),
        position=_position_bias(counted),
        comments=sum(bool(vote.comment) for vote in votes),
        notes=(*_interval_notes(pairs, len({vote.rater for vote in counted if vote.kind == "pair"})), *study.notes()),
    )


def _pair_figures(
    pair: tuple[str, str], raters: Sequence[str], votes: list[Vote], ties: bool, level: float
) -> PairFigures:
    a, b = pair
    prefixes = list(dict.fromkeys(vote.prefix_id for vote in votes))
    winner = {(vote.rater, vote.prefix_id): vote.winner for vote in votes}
    labels = [[winner.get((rater, prefix)) for prefix in prefixes] for rater in raters]
    points = {None: math.nan, a: 1.0, TIE: 0.5, b: 0.0}
    table = np.array([[points[label] for label in row] for row in labels])
    rate = crossed_interval(table, level)
    count = Counter(vote.winner for vote in votes)
    shared = [row for row in labels if any(label is not None for label in row)]
    comparable = bool(((~np.isnan(table)).sum(axis=0) > 1).any())
    categories = [a, b, TIE] if ties else [a, b]
    return PairFigures(
        a=a,
        b=b,
        wins_a=count[a],
        wins_b=count[b],
        ties=count[TIE],
        prefixes=len(prefixes),
        win_rate=replace(rate, low=max(0.0, rate.low), high=min(1.0, rate.high)),
        agreement=percentage_agreement(*shared) if comparable else math.nan,
        ac1=gwet_ac1(*shared, categories=categories) if comparable else math.nan,
        kappa=_mean_kappa(shared),
        alpha=krippendorff_alpha(*shared) if comparable else math.nan,
        sign_test=_sign_test(np.nansum(table - 0.5, axis=0).tolist()),
    )


def _interval_notes(pairs: Sequence[PairFigures], raters: int) -> list[str]:
    notes = []
    if raters == 1:
        notes.append("One rater: the intervals are for other prefixes and the same person, not for other people.")
    elif 1 < raters < _ENOUGH_RATERS:
        covered = ", ".join(f"{share:.0%} with {count}" for count, share in COVERAGE.items())
        notes.append(
            f"The intervals are for other raters and other prefixes, and {raters} raters are few: in simulated studies "
            f"whose raters differ by 15 points, 95% intervals held the true win rate in {covered} raters."
        )
    notes += [
        f"{pair.a} over {pair.b}: all votes are alike, so the interval has no width; other raters may still differ."
        for pair in pairs
        if pair.win_rate.low == pair.win_rate.high
    ]
    return notes


def _mean_kappa(labels: list[list[str | None]]) -> float:
    if len(labels) > _MOST_FOR_KAPPA:
        return math.nan
    kappas = [
        cohen_kappa(one, other)
        for one, other in combinations(labels, 2)
        if any(x is not None and y is not None for x, y in zip(one, other, strict=True))
    ]
    known = [kappa for kappa in kappas if not math.isnan(kappa)]
    return statistics.fmean(known) if known else math.nan


def _sign_test(leads: list[float]) -> SignTest:
    for_a, for_b = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    return SignTest(for_a, for_b, leads.count(0), sign_test_p(for_a, for_b))


def sign_test_p(one: int, other: int) -> float:
    """How likely a split as uneven as `one` to `other`, to either side, is for a fair coin.

    >>> sign_test_p(5, 0)  # 2 · ½⁵
    0.0625
    >>> round(sign_test_p(3, 1), 6)  # 2 · (1 + 4) / 2⁴
    0.625
    >>> sign_test_p(4, 4)
    1.0
    """
    n, few = one + other, min(one, other)
    # In logarithms: the binomial coefficients of forty thousand votes have twelve thousand digits.
    whole = math.lgamma(n + 1) - n * math.log(2)
    tail = math.fsum(math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1)) for k in range(few + 1))
    return min(1.0, 2 * tail)


def _rater_figures(
    study: Study, rater: str, mine: list[Vote], english: str | None, most_failed: int | None
) -> RaterFigures:
    checks = [vote for vote in mine if vote.kind == "check"]
    failed = sum(vote.winner != CHECK[0] for vote in checks)
    earlier = {(vote.systems, vote.prefix_id): vote.winner for vote in mine if vote.kind == "pair"}
    repeats = [vote for vote in mine if vote.kind == "repeat"]
    times = [vote.seconds for vote in mine if vote.seconds is not None]
    cast = {
        pair: [vote.winner for vote in mine if vote.kind == "pair" and vote.systems == pair] for pair in study.pairs
    }
    return RaterFigures(
        rater=rater,
        english=english,
        answered=len(mine),
        asked=len(study.sheets[rater]),
        checks=len(checks),
        checks_failed=failed,
        repeats=len(repeats),
        repeats_alike=sum(vote.winner == earlier[vote.systems, vote.prefix_id] for vote in repeats),
        first_share=_position_bias(mine).share,
        seconds=statistics.median(times) if times else math.nan,
        win_rates={f"{a} over {b}": win_rate(won, a, TIE) if won else math.nan for (a, b), won in cast.items()},
        left_out=most_failed is not None and failed > most_failed,
    )


def _position_bias(votes: Iterable[Vote]) -> PositionBias:
    """Checks have an obvious answer and repeats a remembered one: only pairs tell."""
    count = Counter(vote.choice for vote in votes if vote.kind == "pair")
    return PositionBias(count["first"], count["second"], sign_test_p(count["first"], count["second"]))
