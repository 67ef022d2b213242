"""What a comparison says, in plain sentences made from its figures."""

from __future__ import annotations

from scalegrad.counts import counted
from scalegrad.results.comparison.columns import column, main_columns, written
from scalegrad.results.comparison.systems import Comparison, System

# Differences below these are called none: of shares, and of perplexities (relative).
_SHARE, _PERPLEXITY = 0.005, 0.01


def headline(comparison: Comparison) -> str:
    """The first thing to say.

    >>> systems = [System("MLE", {"rep_1": 0.66}, family="mle"), System("SG γ=0.2", {"rep_1": 0.44}, family="sg")]
    >>> headline(Comparison([*systems, System("Human", {"rep_1": 0.33}, kind="human")]))
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


def sentences(comparison: Comparison) -> list[str]:
    """What else the figures say: how much of the gap is closed, at what perplexity, what decoding alone would do."""
    base, favourite = comparison.baseline, comparison.favourite
    if base is None or favourite is None:
        return []
    found = [
        _gap(favourite, base, comparison.human),
        _perplexity(favourite, base),
        _twin(comparison),
        _seeds(favourite, base),
    ]
    return [sentence for sentence in found if sentence]


def _gap(favourite: System, base: System, human: System | None) -> str:
    if human is None or any("rep_1" not in system.figures for system in (favourite, base, human)):
        return ""
    here, there, goal = (system.figures["rep_1"] for system in (favourite, base, human))
    if there - goal < _SHARE:
        return f"{base.label} repeats no more than people do, so there is no gap to close."
    closed = (there - here) / (there - goal)
    if closed < 0:
        return f"{favourite.label} is further from human text than {base.label}."
    if closed > 1:
        return f"{favourite.label} goes past human text: it repeats less than people do."
    return f"{favourite.label} closes {closed:.0%} of the gap between {base.label} and human text."


def _perplexity(favourite: System, base: System) -> str:
    if any("ppl" not in system.figures for system in (favourite, base)):
        return ""
    here, there = favourite.figures["ppl"], base.figures["ppl"]
    text = f"Its plain perplexity is {written('ppl', here)} against {written('ppl', there)} ({here / there - 1:+.1%})"
    if "calibrated_ppl" in favourite.figures:
        calibrated = favourite.figures["calibrated_ppl"]
        how = "with the probabilities of tokens not said before multiplied by γ and all renormalised, as in training"
        text += f". Its calibrated perplexity, {how}, is {written('ppl', calibrated)}; it does not compare with MLE's"
    return text + "."


def penalty_alone_is_better(comparison: Comparison) -> bool:
    """Is the baseline decoded with the favourite's γ no worse than it in Rep-1 and in perplexity, and better in one?"""
    twin, favourite = comparison.twin, comparison.favourite
    if twin is None or favourite is None or "rep_1" not in twin.figures or "rep_1" not in favourite.figures:
        return False
    text, perplexity = _gains(favourite, twin, comparison.human)
    return _penalty_wins(text, perplexity or 0)


def _penalty_wins(text: int, perplexity: int) -> bool:
    """By what training gains over it, as signs: nothing, and it loses in one of the two."""
    return max(text, perplexity) <= 0 > min(text, perplexity)


def _twin(comparison: Comparison) -> str:
    twin, favourite = comparison.twin, comparison.favourite
    if twin is None or favourite is None or "rep_1" not in twin.figures or "rep_1" not in favourite.figures:
        return ""
    at = f" at a perplexity of {written('ppl', twin.figures['ppl'])}" if "ppl" in twin.figures else ""
    base = comparison.baseline.label if comparison.baseline else "the baseline"
    how = f"with a penalty of γ={twin.strength:g} on what was said"
    text = f"Not trained for it but merely decoded {how}, {base} repeats {_percent(twin, 'rep_1')} of 100 words{at}"
    return f"{text}: {_verdict(favourite, twin, comparison.human)}{_than_both(comparison)}."


def _verdict(favourite: System, twin: System, human: System | None) -> str:
    """Which is nearer to human Rep-1 (lower, without human text), and which has the lower perplexity."""
    text, perplexity = _gains(favourite, twin, human)
    if perplexity is None:
        words = {1: "further from human text than the trained model", 0: "as near to human text as the trained model"}
        return words.get(text, "nearer to human text than the trained model")
    if text == perplexity == 0:
        return "neither is nearer to human text or lower in perplexity"
    if text * perplexity >= 0:
        which = "training" if text + perplexity > 0 else "the penalty"
        near, price = "nearer" if text else "as near", "lower" if perplexity else "no higher"
        return f"{which} is {near} to human text, and its perplexity is {price}"
    if text > 0:
        return "training comes nearer to human text, the penalty keeps the lower perplexity"
    return "the penalty comes nearer to human text, training keeps the lower perplexity"


def _gains(favourite: System, twin: System, human: System | None) -> tuple[int, int | None]:
    """What training gains over the penalty, as signs: nearness to human text, and perplexity where both have one."""
    goal = human.figures.get("rep_1", 0.0) if human else 0.0
    margin = max(_SHARE, favourite.deviations.get("rep_1", 0.0), twin.deviations.get("rep_1", 0.0))
    text = _sign(abs(twin.figures["rep_1"] - goal) - abs(favourite.figures["rep_1"] - goal), margin)
    if "ppl" not in twin.figures or "ppl" not in favourite.figures:
        return text, None
    here, there = favourite.figures["ppl"], twin.figures["ppl"]
    spread = max(favourite.deviations.get("ppl", 0.0), twin.deviations.get("ppl", 0.0))
    return text, _sign(there - here, max(_PERPLEXITY * here, spread))


def _than_both(comparison: Comparison) -> str:
    """The better of two ways to change a model may still be worse than not to change it."""
    base, human = comparison.baseline, comparison.human
    changed = [system for system in (comparison.favourite, comparison.twin) if system]
    if base is None or human is None or any("rep_1" not in system.figures for system in (base, human)):
        return ""
    if any(_gains(system, base, human)[0] >= 0 for system in changed):
        return ""
    return f"; plain {base.label} is nearer to human text than both"


def _seeds(favourite: System, base: System) -> str:
    runs = min(favourite.runs, base.runs)
    if runs < 2 or any("rep_1" not in system.deviations for system in (favourite, base)):
        return ""
    spread = max(favourite.deviations["rep_1"], base.deviations["rep_1"])
    apart = abs(favourite.figures["rep_1"] - base.figures["rep_1"])
    how = "more than" if apart > spread else "no more than"
    return (
        f"Figures are means over {runs} seeds; {favourite.label} and {base.label} are {written('rep_1', apart)} apart "
        f"in Rep-1, {how} the deviation of {written('rep_1', spread)}."
    )


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


def _sign(value: float, margin: float) -> int:
    return 0 if abs(value) <= margin else (1 if value > 0 else -1)
