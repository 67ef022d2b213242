"""The headline of a comparison, made from its figures."""

from __future__ import annotations

from scalegrad.counts import counted
from scalegrad.results.comparison.columns import column, main_columns, written
from scalegrad.results.comparison.systems import Comparison, System


def headline(comparison: Comparison) -> str:
    """The first thing to say.

    >>> strengths = {"mle": (None, 0.66), "sg": (0.2, 0.44), "human": (None, 0.33)}
    >>> systems = [System(objective=o, strength=s, figures={"rep_1": rep}) for o, (s, rep) in strengths.items()]
    >>> headline(Comparison(systems))
    'Of 100 words, SG γ=0.2 repeats 44 and MLE 66. People repeat 33.'
    """
    base, favourite, human = comparison.baseline, comparison.favourite, comparison.human
    if base is None:
        return "Nothing to compare yet"
    said = [system for system in (favourite, base) if system is not None and "rep_1" in system.figures]
    if said:
        first, *others = said
        text = f"Of 100 words, {first.label} repeats {_percent(first, 'rep_1')}"
        text += "".join(f" and {other.label} {_percent(other, 'rep_1')}" for other in others) + "."
        return text + (f" People repeat {_percent(human, 'rep_1')}." if human and "rep_1" in human.figures else "")
    return _best_sentence(comparison) or f"{counted(len(comparison.of_kind('trained')), 'system')} compared"


def _best_sentence(comparison: Comparison) -> str:
    names = [name for group in main_columns(comparison.systems).values() for name in group]
    trained = comparison.of_kind("trained", "decoded")
    for name in names:
        if column(name).better != "high":
            continue
        ranked = sorted((s for s in trained if name in s.figures), key=lambda s: -s.figures[name])
        if len(ranked) > 1:
            told = ", ".join(f"{s.label} {written(name, s.figures[name])}" for s in ranked[1:3])
            return f"{column(name).title}: {ranked[0].label} {written(name, ranked[0].figures[name])}, then {told}."
    return ""


def _percent(system: System, name: str) -> str:
    return f"{100 * system.figures[name]:.0f}"
