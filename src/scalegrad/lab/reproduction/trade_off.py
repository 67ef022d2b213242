"""Perplexity against repetition as curves: over γ, over α and over the penalty of the decoding, compared where equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scalegrad.report.comparison import Comparison, System
from scalegrad.report.comparison.columns import column, written

Point = tuple[float, float]  # perplexity and a share of repetition


class Curves(NamedTuple):
    """Each from MLE on, weakest first: ScaleGrad over γ, unlikelihood over α, MLE decoded under a falling γ."""

    scale_grad: list[System]
    unlikelihood: list[System]
    penalty: list[System]


_NAMES = ("ScaleGrad", "unlikelihood", "the decoding-time penalty")


def curves_of(comparison: Comparison) -> Curves:
    """The curves of a comparison; schedules of γ lie on none of them."""
    base = [system for system in comparison.of_kind("trained") if system.family == "mle"][:1]

    def swept(kind: str, family: str, weakest_first: int) -> list[System]:
        own = [
            s for s in comparison.of_kind(kind) if s.family == family and s.strength is not None and "ppl" in s.figures
        ]
        return base + sorted(own, key=lambda system: weakest_first * (system.strength or 0.0))

    return Curves(swept("trained", "sg", -1), swept("trained", "ul", 1), swept("decoded", "mle", -1))


def where(points: Sequence[Point], at: float, *, on: int) -> float | None:
    """The other coordinate where a curve first comes to `at` of coordinate `on` (0 perplexity, 1 repetition).

    Between two points of the curve it is a straight line; None where the curve does not come there.

    >>> curve = [(10.0, 0.8), (11.0, 0.6), (15.0, 0.4)]
    >>> where(curve, 0.5, on=1), where(curve, 10.5, on=0), where(curve, 0.3, on=1)
    (13.0, 0.7, None)
    """
    for before, after in zip(points, points[1:], strict=False):
        low, high = sorted((before[on], after[on]))
        if low <= at <= high:
            share = 0.0 if before[on] == after[on] else (at - before[on]) / (after[on] - before[on])
            other = 1 - on
            return round(before[other] + share * (after[other] - before[other]), 12)
    return None


def comparisons(comparison: Comparison, reference: str, name: str = "rep_1") -> list[str]:
    """At the repetition, and at the perplexity, of the model labelled `reference`: what each curve has there."""
    curves = curves_of(comparison)
    here = next((s for s in comparison.of_kind("trained") if s.label == reference), None)
    if here is None or any(key not in here.figures for key in ("ppl", name)):
        return []
    title = column(name).title
    rep, ppl = here.figures[name], here.figures["ppl"]
    at_rep = [_written("ppl", where(_points(curve, name), rep, on=1)) for curve in curves]
    at_ppl = [_written(name, where(_points(curve, name), ppl, on=0)) for curve in curves]
    how = "each between its two nearest points"
    return [
        f"At the {title} of {reference} ({written(name, rep)}) the perplexity is "
        f"{_told(at_rep)} ({how}; MLE's own is {written('ppl', curves.scale_grad[0].figures['ppl'])}).",
        f"At the perplexity of {reference} ({written('ppl', ppl)}) {title} is {_told(at_ppl)}.",
    ]


def verdict(comparison: Comparison, reference: str, name: str = "rep_1") -> str:
    """Does training beat the decoding-time penalty at equal repetition, and at equal perplexity? One sentence."""
    here = next((s for s in comparison.of_kind("trained") if s.label == reference), None)
    curve = _points(curves_of(comparison).penalty, name)
    if here is None or name not in here.figures or len(curve) < 2:
        return ""
    rep, ppl, title = here.figures[name], here.figures["ppl"], column(name).title
    other_ppl, other_rep = where(curve, rep, on=1), where(curve, ppl, on=0)
    said = []
    if other_ppl is not None:
        margin = max(0.005 * ppl, here.deviations.get("ppl", 0.0))
        better = "the same as" if abs(ppl - other_ppl) <= margin else "lower than" if ppl < other_ppl else "higher than"
        said.append(
            f"at equal {title} ({written(name, rep)}) its perplexity, {written('ppl', ppl)}, is {better} that of MLE "
            f"decoded with the penalty, {written('ppl', other_ppl)}"
        )
    if other_rep is not None:
        margin = max(0.005, here.deviations.get(name, 0.0))
        better = "the same as" if abs(rep - other_rep) <= margin else "lower than" if rep < other_rep else "higher than"
        said.append(
            f"at equal perplexity ({written('ppl', ppl)}) its {title}, {written(name, rep)}, is {better} the "
            f"penalty's, {written(name, other_rep)}"
        )
    if not said:
        least, most = sorted(point[1] for point in (curve[0], curve[-1]))
        return (
            f"{reference} and the penalty have no {title} and no perplexity in common: the penalty's {title} goes from "
            f"{written(name, most)} to {written(name, least)}."
        )
    wins = (other_ppl is None or ppl < other_ppl) and (other_rep is None or rep < other_rep)
    loses = (other_ppl is None or ppl >= other_ppl) and (other_rep is None or rep >= other_rep)
    answer = "Yes" if wins else "No" if loses else "It depends"
    return f"Does training with {reference} beat the decoding-time penalty? {answer}: {', and '.join(said)}."


def _points(curve: Sequence[System], name: str) -> list[Point]:
    return [(s.figures["ppl"], s.figures[name]) for s in curve if name in s.figures and "ppl" in s.figures]


def _written(name: str, value: float | None) -> str:
    return "out of reach" if value is None else written(name, value)


def _told(values: Sequence[str]) -> str:
    said = [f"{value} for {name}" for name, value in zip(_NAMES, values, strict=True)]
    return f"{', '.join(said[:-1])} and {said[-1]}"
