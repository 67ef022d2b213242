"""Perplexity against repetition as curves, over γ, over α and over the penalty of the decoding: held equal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from scalegrad.report.comparison import Comparison, System
from scalegrad.report.comparison.columns import column, written

Point = tuple[float, float]  # perplexity and a share of repetition


class Curves(NamedTuple):
    """Each from MLE on, weakest first: ScaleGrad over γ, unlikelihood over α, MLE decoded under a falling γ."""

    scale_grad: list[System]
    unlikelihood: list[System]
    penalty: list[System]


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
    for before, after in pairwise(points):
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
    title, others = column(name).title, curves[1:]
    rep, ppl = here.figures[name], here.figures["ppl"]
    at_rep = [_written("ppl", where(_points(curve, name), rep, on=1)) for curve in others]
    at_ppl = [_written(name, where(_points(curve, name), ppl, on=0)) for curve in others]
    mle = curves.scale_grad[0].figures
    return [
        f"{reference} has a perplexity of {written('ppl', ppl)} at a {title} of {written(name, rep)} (MLE: "
        f"{written('ppl', mle['ppl'])} at {written(name, mle[name])}). Perplexity of the others at this {title}: "
        f"unlikelihood {at_rep[0]}, the decoding-time penalty {at_rep[1]}. Their {title} at this perplexity: "
        f"unlikelihood {at_ppl[0]}, the penalty {at_ppl[1]} (on straight lines between the points tried).",
    ]


def verdict(comparison: Comparison, reference: str, name: str = "rep_1") -> str:
    """Does training beat the decoding-time penalty at equal repetition, and at equal perplexity? One sentence."""
    here = next((s for s in comparison.of_kind("trained") if s.label == reference), None)
    curve = _points(curves_of(comparison).penalty, name)
    if here is None or name not in here.figures or len(curve) < 2:
        return ""
    rep, ppl, title = here.figures[name], here.figures["ppl"], column(name).title
    other_ppl, other_rep = where(curve, rep, on=1), where(curve, ppl, on=0)
    said, signs = [], []
    if other_ppl is not None:
        signs.append(_sign(other_ppl - ppl, max(0.005 * ppl, here.deviations.get("ppl", 0.0))))
        said.append(
            f"at equal {title} ({written(name, rep)}) its perplexity, {written('ppl', ppl)}, is {_HOW[signs[-1]]} that "
            f"of MLE decoded with the penalty, {written('ppl', other_ppl)}"
        )
    if other_rep is not None:
        signs.append(_sign(other_rep - rep, max(0.005, here.deviations.get(name, 0.0))))
        said.append(
            f"at equal perplexity ({written('ppl', ppl)}) its {title}, {written(name, rep)}, is {_HOW[signs[-1]]} the "
            f"penalty's, {written(name, other_rep)}"
        )
    if not said:
        ends = " to ".join(written(name, point[1]) for point in (curve[0], curve[-1]))
        return (
            f"{reference} and the penalty have no {title} and no perplexity in common: the penalty's {title} goes from "
            f"{ends}."
        )
    answer = _ANSWERS[tuple(sorted({*signs} - {0}))]
    return f"Does training with {reference} beat the decoding-time penalty? {answer}: {', and '.join(said)}."


_ANSWERS = {(1,): "Yes", (-1,): "No", (): "Neither is better", (-1, 1): "It depends"}
_HOW = {1: "lower than", 0: "the same as", -1: "higher than"}


def _sign(value: float, margin: float) -> int:
    return 0 if abs(value) <= margin else (1 if value > 0 else -1)


def _points(curve: Sequence[System], name: str) -> list[Point]:
    return [(s.figures["ppl"], s.figures[name]) for s in curve if name in s.figures and "ppl" in s.figures]


def _written(name: str, value: float | None) -> str:
    return "does not reach it" if value is None else written(name, value)
