"""Which γ to take: as near to human text as a budget of perplexity allows."""

from __future__ import annotations

from dataclasses import dataclass

from scalegrad.report.comparison import Comparison, System
from scalegrad.report.comparison.columns import written
from scalegrad.report.comparison.sensitivity import mean_rep_l


@dataclass(frozen=True)
class Recommendation:
    """The γ to take, or None, and why, in one sentence with the figures."""

    gamma: float | None
    sentence: str


def recommend(comparison: Comparison, budget: float = 0.05) -> Recommendation:
    """Of the ScaleGrad models whose plain perplexity is at most `budget` above MLE's, the nearest to human repetition.

    Of two equally near the cheaper. Repetition is Rep-1 of free-running text; where that was not measured, the mean of
    Rep/16, Rep/32 and Rep/128.

    >>> rows = [System("MLE", {"ppl": 20.0, "rep_1": 0.6}, family="mle")]
    >>> rows += [System(f"SG γ={g}", {"ppl": p, "rep_1": r}, family="sg", strength=g)
    ...          for g, p, r in ((0.2, 23.0, 0.35), (0.5, 20.8, 0.45), (0.8, 20.1, 0.55))]
    >>> print(recommend(Comparison([*rows, System("Human", {"rep_1": 0.33}, kind="human")])).sentence)
    Take γ=0.5: its Rep-1 of .450 is nearest to human text (.330) of the 2 of 3 γ tried that cost at most 5% of MLE's
    perplexity (20.80 against 20.00, +4.0%; MLE's own Rep-1: .600).
    """
    if not budget >= 0:
        raise ValueError(f"budget must be 0 or more (0.05 is 5% of MLE's perplexity), not {budget!r}")
    models = comparison.of_kind("trained")
    base = next((system for system in models if system.family == "mle"), None)
    tried = [system for system in models if system.family == "sg" and system.strength is not None]
    if base is None or not tried or comparison.human is None:
        raise ValueError("a recommendation needs an MLE model, ScaleGrad models and human text to compare")
    name, values = _repetition([base, *tried, comparison.human])
    goal, own = values[comparison.human.label], values[base.label]
    cost = {system.label: system.figures["ppl"] / base.figures["ppl"] - 1 for system in tried}
    within = [system for system in tried if cost[system.label] <= budget]
    if not within:
        cheapest = min(tried, key=lambda system: cost[system.label])
        return Recommendation(
            None,
            f"No γ tried costs at most {100 * budget:g}% of MLE's perplexity: the cheapest, γ={cheapest.strength:g}, "
            f"costs {cost[cheapest.label]:+.1%} ({_ppl(cheapest)} against {_ppl(base)}). Allow more, or try γ nearer "
            "to 1.",
        )
    chosen = min(within, key=lambda system: (round(abs(values[system.label] - goal), 4), cost[system.label]))
    if abs(values[chosen.label] - goal) >= abs(own - goal):
        return Recommendation(
            None,
            f"Stay with MLE: no γ tried within {100 * budget:g}% of its perplexity comes nearer to human text "
            f"({name} {_share(goal)}) than MLE itself ({_share(own)}); the nearest, γ={chosen.strength:g}, has "
            f"{_share(values[chosen.label])}.",
        )
    return Recommendation(
        chosen.strength,
        f"Take γ={chosen.strength:g}: its {name} of {_share(values[chosen.label])} is nearest to human text "
        f"({_share(goal)}) of the {len(within)} of {len(tried)} γ tried that cost at most "
        f"{100 * budget:g}% of MLE's perplexity ({_ppl(chosen)} against {_ppl(base)}, {cost[chosen.label]:+.1%}; "
        f"MLE's own {name}: {_share(own)}).",
    )


def read_budget(text: str) -> float:
    """0.05 of "5%" or "0.05".

    >>> read_budget("5%"), read_budget("0.1")
    (0.05, 0.1)
    """
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"--budget must be a share of MLE's perplexity, such as 5% or 0.05, not {text!r}")
    return value


def _repetition(systems: list[System]) -> tuple[str, dict[str, float]]:
    if all("rep_1" in system.figures for system in systems):
        return "Rep-1", {system.label: system.figures["rep_1"] for system in systems}
    return "mean Rep/l", {system.label: mean_rep_l(system.figures) for system in systems}


def _share(value: float) -> str:
    return written("rep_1", value)


def _ppl(system: System) -> str:
    return written("ppl", system.figures["ppl"])
