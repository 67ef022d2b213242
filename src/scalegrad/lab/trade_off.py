"""Perplexity against repetition as curves, over γ, over α and over the penalty of the decoding: held equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scalegrad.results.comparison import Comparison, System
from scalegrad.results.comparison.columns import column, written
from scalegrad.results.comparison.curve import Point, is_curve, point, swept, where

OF_TEXTS = ("rep_1", "rep_2", "rep_3")
REPETITION = ("rep_1", "rep_2", "rep_3", "rep_window_16", "rep_window_32", "rep_window_128")

TWO_LENGTHS = (
    "Rep-n is of generated texts, perplexity of long chunks, where more counts as seen: at one length the penalty "
    "costs less than these figures say."
)


class Curves(NamedTuple):
    """Each from MLE on, weakest first: ScaleGrad over γ, unlikelihood over α, MLE decoded under a falling γ."""

    scale_grad: list[System]
    unlikelihood: list[System]
    penalty: list[System]


def curves_of(comparison: Comparison) -> Curves:
    """The curves of a comparison, without MLE where it is not there; schedules of γ lie on none of them."""
    scored = [system for system in comparison.of_kind("trained", "decoded") if "ppl" in system.figures]
    return Curves(swept(scored, "trained", "sg"), swept(scored, "trained", "ul"), swept(scored, "decoded", "mle"))


def held_equal(comparison: Comparison, names: Sequence[str] = REPETITION) -> list[str]:
    """How much higher the perplexity of the others is at the repetition that each γ reaches: a sentence a measure.

    Nothing is said of what has too few points for a curve. A last sentence says where two lengths are compared.
    """
    scale_grad, unlikelihood, penalty = curves_of(comparison)
    said, of_texts = [], False
    for name in names:
        reached = [(s.strength, at) for s in scale_grad if s.strength is not None and (at := point(s.figures, name))]
        others = {"the decoding-time penalty": _points(penalty, name), "unlikelihood": _points(unlikelihood, name)}
        told = [
            f"{other} {', '.join(_beside(curve, at) for _, at in reached)}"
            for other, curve in others.items()
            if is_curve(curve)
        ]
        if reached and told:
            gammas = ", ".join(f"{gamma:g}" for gamma, _ in reached)
            said.append(
                f"Perplexity beside ScaleGrad's at the {column(name).title} of γ = {gammas}: {'; '.join(told)}."
            )
            of_texts = of_texts or name in OF_TEXTS
    return [*said, TWO_LENGTHS] if of_texts else said


def _beside(curve: Sequence[Point], reached: Point) -> str:
    """A curve's perplexity at a repetition, in percent of the perplexity that ScaleGrad has there.

    >>> _beside([(20.0, 0.8), (26.0, 0.5), (32.0, 0.2)], reached=(25.0, 0.4)), _beside([(20.0, 0.8)], (25.0, 0.4))
    ('+12.0%', 'not reached')
    """
    ppl, rep = reached
    found = where(curve, rep, on=1)
    return "not reached" if found is None else f"{100 * (found / ppl - 1):+.1f}%".replace("-", "−")


def beside_the_penalty(comparison: Comparison, reference: str, name: str = "rep_1") -> str:
    """A trained model and the decoding-time penalty, at equal repetition and at equal perplexity. One sentence.

    "" where the penalty has too few points for a curve: nothing is known between them.
    """
    labelled = (system for system in comparison.of_kind("trained") if system.label == reference)
    here = next((system for system in labelled if point(system.figures, name)), None)
    curve = _points(curves_of(comparison).penalty, name)
    if here is None or not is_curve(curve):
        return ""
    rep, ppl, title = here.figures[name], here.figures["ppl"], column(name).title
    other_ppl, other_rep = where(curve, rep, on=1), where(curve, ppl, on=0)
    parts = []
    if other_ppl is not None:
        parts.append(
            f"at equal {title} ({written(name, rep)}) {reference} has a perplexity of {written('ppl', ppl)}, "
            f"the penalty {written('ppl', other_ppl)}"
        )
    if other_rep is not None:
        parts.append(
            f"at equal perplexity ({written('ppl', ppl)}) {reference} has a {title} of {written(name, rep)}, "
            f"the penalty {written(name, other_rep)}"
        )
    if not parts:
        ends = " to ".join(written(name, point[1]) for point in (curve[0], curve[-1]))
        return (
            f"{reference} and the penalty have no {title} and no perplexity in common: the penalty's {title} goes from "
            f"{ends}."
        )
    return f"Beside MLE decoded under a penalty: {'; '.join(parts)}."


def _points(curve: Sequence[System], name: str) -> list[Point]:
    return [found for system in curve if (found := point(system.figures, name))]
