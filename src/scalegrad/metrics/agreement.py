"""Human evaluation: win rates, and how far raters agree beyond chance.

Raters are given one after the other, each as a sequence with a label an item: `gwet_ac1(rater_a, rater_b)`, with more
raters `gwet_ac1(a, b, c)`. Labels are anything hashable; None (or NaN) is a missing rating; a tie is a label too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ratings = Sequence[Hashable | None]
Level = Literal["nominal", "ordinal", "interval"]


def win_rate(votes: Iterable[Hashable | None], system: Hashable, tie: Hashable = "tie") -> float:
    """The share of all votes that `system` won; a tie counts half to each side, None (or NaN) is no vote.

    >>> win_rate(["sg", "mle", "sg", "tie", None], "sg")  # 2½ of 4
    0.625
    """
    cast = [vote for vote in votes if not _missing(vote)]
    if not cast:
        raise ValueError("votes must hold at least one vote")
    return (cast.count(system) + cast.count(tie) / 2) / len(cast)


def percentage_agreement(*raters: Ratings) -> float:
    """The share of items that two raters label alike; with more raters, of pairs of raters, averaged over items.

    Items with fewer than two ratings are left out.

    >>> percentage_agreement(["a", "a", "b", None], ["a", "b", "b", "b"])
    0.6666666666666666
    """
    return _pair_agreement(_table(raters)[0])


def gwet_ac1(*raters: Ratings, categories: Sequence[Hashable] | None = None) -> float:
    """Gwet's AC1 (2008) for two or more raters: (p_a − p_e) / (1 − p_e), p_e = Σ_q π_q (1 − π_q) / (Q − 1).

    p_a is the percentage agreement and π_q the mean share of votes for category q of Q. Unlike Cohen's kappa it stays
    high where raters agree and nearly all votes go one way. Missing ratings: an item with one rating still counts for
    π. `categories` names all that could be chosen, where some never were: Q counts them.

    >>> a = ["sg"] * 76 + ["mle"] * 8 + ["sg"] * 16
    >>> b = ["sg"] * 76 + ["mle"] * 8 + ["mle"] * 16
    >>> round(gwet_ac1(a, b), 3)  # 84% agree; π = .84, p_e = 2 · .84 · .16 = .2688
    0.781
    """
    counts, labels = _table(raters, categories)
    rated = counts[counts.sum(axis=1) > 0]
    share = (rated / rated.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = float((share * (1 - share)).sum() / max(len(labels) - 1, 1))
    return (_pair_agreement(counts) - chance) / (1 - chance)


def cohen_kappa(rater_a: Ratings, rater_b: Ratings) -> float:
    """Cohen's kappa of two raters: (p_a − p_e) / (1 − p_e), with p_e = Σ_q P_a(q) P_b(q) from each rater's own shares.

    Where nearly all votes go one way p_e is nearly 1 and kappa low, however well the raters agree: why the paper
    reports AC1. Items that one of them did not rate are left out; NaN where both use one and the same label only.

    >>> a = ["sg"] * 76 + ["mle"] * 8 + ["sg"] * 16
    >>> b = ["sg"] * 76 + ["mle"] * 8 + ["mle"] * 16
    >>> round(cohen_kappa(a, b), 3)  # p_e = .92 · .76 + .08 · .24 = .7184
    0.432
    """
    counts, labels = _table((rater_a, rater_b))
    both = counts.sum(axis=1) == 2
    number: dict[Hashable | None, int] = {label: index for index, label in enumerate(labels)}
    agreement = _pair_agreement(counts)
    of_a, of_b = (
        np.bincount([number[rater[item]] for item in np.flatnonzero(both).tolist()], minlength=len(labels)) / both.sum()
        for rater in (rater_a, rater_b)
    )
    chance = float(of_a @ of_b)
    return (agreement - chance) / (1 - chance) if chance < 1 else float("nan")


def krippendorff_alpha(*raters: Ratings, level: Level = "nominal") -> float:
    """Krippendorff's alpha for two or more raters: 1 − observed / expected disagreement.

    Nominal: labels are alike or not. Interval: labels are numbers and their squared difference counts. Ordinal: numbers
    of which only the order counts. Items with fewer than two ratings are left out; NaN where all labels are one.

    >>> krippendorff_alpha([1, 1, 2, 2], [1, 1, 2, 1])  # 1 − 7 · 2 / (2 · 5 · 3)
    0.5333333333333333
    """
    counts, labels = _table(raters)
    rated = counts[counts.sum(axis=1) >= 2]
    if not len(rated):
        raise ValueError("raters must share at least one item")
    # Coincidences: how often two labels meet in an item, each rating weighing 1 in all.
    sizes = rated.sum(axis=1)
    met = (rated / (sizes - 1)[:, None]).T @ rated
    met[np.diag_indices_from(met)] -= (rated / (sizes - 1)[:, None]).sum(axis=0)
    totals = met.sum(axis=0)
    gap = _squared_gaps(labels, totals, level)
    observed, expected = float((met * gap).sum()), float(totals @ gap @ totals)
    return 1 - float(totals.sum() - 1) * observed / expected if expected > 0 else float("nan")


def _squared_gaps(labels: list[Hashable], totals: Floats, level: Level) -> Floats:
    """How far apart two labels are, squared: [Q, Q]."""
    if level == "nominal":
        return 1 - np.eye(len(labels))
    if level not in ("ordinal", "interval"):
        raise ValueError(f"level must be 'nominal', 'ordinal' or 'interval', not {level!r}")
    numbers = [float(label) for label in labels if isinstance(label, int | float | np.number)]
    if len(numbers) < len(labels):
        raise ValueError(f"raters must give numbers for level={level!r}")
    place = np.array(numbers)
    if level == "ordinal":  # the middle of a label's ranks among all ratings
        order = np.argsort(place)
        place[order] = np.cumsum(totals[order]) - totals[order] / 2
    gaps: Floats = (place[:, None] - place) ** 2
    return gaps


def _pair_agreement(counts: Floats) -> float:
    """The share of pairs of ratings that agree, averaged over the items with at least two ratings."""
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes >= 2], sizes[sizes >= 2]
    if not len(counts):
        raise ValueError("raters must share at least one item")
    return float(((counts * (counts - 1)).sum(axis=1) / (sizes * (sizes - 1))).mean())


def _table(raters: Sequence[Ratings], categories: Sequence[Hashable] | None = None) -> tuple[Floats, list[Hashable]]:
    """How often each item [items] got each label [Q], and the labels."""
    if len(raters) < 2:
        raise ValueError(f"raters must be two or more, not {len(raters)}")
    lengths = [len(rater) for rater in raters]
    if len(set(lengths)) > 1:
        raise ValueError(f"raters must rate the same items (None where missing); they rate {lengths}")
    number: dict[Hashable, int] = {label: index for index, label in enumerate(categories or ())}
    for rater in raters:
        for label in rater:
            if not _missing(label) and label not in number:
                if categories is not None:
                    raise ValueError(f"raters must use the categories {list(categories)}, not {label!r}")
                number[label] = len(number)
    counts = np.zeros((lengths[0], len(number)))
    for rater in raters:
        for item, label in enumerate(rater):
            if not _missing(label):
                counts[item, number[label]] += 1
    return counts, list(number)


def _missing(label: Hashable | None) -> bool:
    return label is None or (isinstance(label, float) and label != label)
