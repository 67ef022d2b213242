"""Which γ to take: as near to human text as a budget of perplexity allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scalegrad.results.comparison import Comparison, System
from scalegrad.results.comparison.columns import written
from scalegrad.results.comparison.sensitivity import mean_rep_l

# Differences below these are called none: of Rep-1, and of perplexities (relative).
_SHARE, _PERPLEXITY = 0.005, 0.01


@dataclass(frozen=True)
class Recommendation:
    """The γ to take, or None, and why, in words with the figures.

    `spoken_of` is the γ of the model that the rest of a report speaks of: the one to take, else of all γ tried the
    nearest to human text.
    """

    gamma: float | None
    sentence: str
    spoken_of: float | None


def recommend(comparison: Comparison, budget: float = 0.05) -> Recommendation:
    """Of the ScaleGrad models whose plain perplexity is at most `budget` above MLE's, the nearest to human repetition.

    Of two equally near the cheaper. Repetition is Rep-1 of free-running text; where that was not measured, the mean of
    Rep/16, Rep/32 and Rep/128.

    >>> rows = [System(objective="mle", figures={"ppl": 20.0, "rep_1": 0.6})]
    >>> rows += [System(objective="sg", strength=g, figures={"ppl": p, "rep_1": r})
    ...          for g, p, r in ((0.2, 23.0, 0.35), (0.5, 20.8, 0.45), (0.8, 20.1, 0.55))]
    >>> print(recommend(Comparison([*rows, System(objective="human", figures={"rep_1": 0.33})])).sentence)
    Take γ=0.5: its Rep-1 of .450 is nearest to human text (.330) of the 2 of 3 γ tried that cost at most 5% of MLE's
    perplexity (20.80 against 20.00, +4.0%; MLE's own Rep-1: .600).
    """
    if not budget >= 0:
        raise ValueError(f"budget must be 0 or more (0.05 is 5% of MLE's perplexity), not {budget!r}")
    trials = _Trials.of(comparison)
    within = [system for system in trials.tried if trials.cost(system) <= budget]
    if not within:
        cheapest = min(trials.tried, key=trials.cost)
        why = (
            f"No γ tried costs at most {100 * budget:g}% of MLE's perplexity: the cheapest, γ={cheapest.level:g}, "
            f"costs {trials.cost(cheapest):+.1%} ({_ppl(cheapest)} against {_ppl(trials.base)})."
        )
        if trials.nearer_than_mle(trials.nearest(trials.tried)):
            why += " Allow more, or try γ nearer to 1."
        else:
            own = trials.repetition(trials.base)
            why += f" Nor does any come nearer to human text than MLE itself ({trials.name} {own}): stay with it."
        return trials.none_taken(why, within)
    chosen = trials.nearest(within)
    if not trials.nearer_than_mle(chosen):
        why = (
            f"Stay with MLE: no γ tried within {100 * budget:g}% of its perplexity comes nearer to human text "
            f"({trials.name} {_share(trials.goal)}) than MLE itself ({trials.repetition(trials.base)}); the nearest, "
            f"γ={chosen.level:g}, has {trials.repetition(chosen)}."
        )
        return trials.none_taken(why, within)
    why = f"Take γ={chosen.level:g}: {trials.reasons(chosen, len(within), budget)}"
    if _penalty_alone_is_better(replace(comparison, chosen=chosen)):
        why += f" MLE decoded with a penalty of γ={chosen.level:g} is no worse in either, without training for it."
    return Recommendation(chosen.level, why, chosen.level)


@dataclass(frozen=True)
class _Trials:
    """What a recommendation weighs: each model's repetition, under its `name` (`goal` is people's), and perplexity."""

    base: System
    tried: list[System]
    name: str
    measure: Callable[[System], float]
    goal: float

    @classmethod
    def of(cls, comparison: Comparison) -> _Trials:
        models = comparison.of_kind("trained")
        base = next((system for system in models if system.objective == "mle"), None)
        tried = [system for system in models if system.objective == "sg" and system.level is not None]
        if base is None or not tried or comparison.human is None:
            raise ValueError("a recommendation needs an MLE model, ScaleGrad models and human text to compare")
        name, measure = _repetition([base, *tried, comparison.human])
        return cls(base, tried, name, measure, measure(comparison.human))

    def cost(self, system: System) -> float:
        return system.figures["ppl"] / self.base.figures["ppl"] - 1

    def price(self, system: System) -> str:
        return f"{_ppl(system)} against {_ppl(self.base)}, {self.cost(system):+.1%}"

    def repetition(self, system: System) -> str:
        return _share(self.measure(system))

    def distance(self, system: System) -> float:
        return abs(self.measure(system) - self.goal)

    def nearest(self, systems: list[System]) -> System:
        return min(systems, key=lambda system: (round(self.distance(system), 4), self.cost(system)))

    def nearer_than_mle(self, system: System) -> bool:
        return self.distance(system) < self.distance(self.base)

    def reasons(self, chosen: System, within: int, budget: float) -> str:
        """Why this γ, of those `within` the budget."""
        allowed, own = f"{100 * budget:g}% of MLE's perplexity", self.repetition(self.base)
        if within == 1:
            alone = f"of the {len(self.tried)} γ tried it alone" if len(self.tried) > 1 else "it"
            return (
                f"{alone} costs at most {allowed} ({self.price(chosen)}), and its {self.name} of "
                f"{self.repetition(chosen)} is nearer to human text ({_share(self.goal)}) than MLE's own ({own})."
            )
        return (
            f"its {self.name} of {self.repetition(chosen)} is nearest to human text ({_share(self.goal)}) of the "
            f"{within} of {len(self.tried)} γ tried that cost at most {allowed} ({self.price(chosen)}; "
            f"MLE's own {self.name}: {own})."
        )

    def none_taken(self, why: str, within: list[System]) -> Recommendation:
        """The rest of a report speaks of the γ nearest to human text: where it is over the budget, say so here."""
        best = self.nearest(self.tried)
        if best not in within:
            why += (
                f" Over the budget, γ={best.level:g} comes nearest to human text of all γ tried: {self.name} "
                f"{self.repetition(best)}, perplexity {self.price(best)}."
            )
        return Recommendation(None, why, best.level)


def _penalty_alone_is_better(comparison: Comparison) -> bool:
    """Is MLE decoded with the favourite's γ no worse than it in Rep-1 and in perplexity, and better in one?

    A difference no larger than the deviation over seeds is none.
    """
    twin, favourite, human = comparison.twin, comparison.favourite, comparison.human
    if twin is None or favourite is None or "rep_1" not in twin.figures or "rep_1" not in favourite.figures:
        return False
    pair = (twin, favourite)

    def gain(name: str, goal: float, least: float) -> float:
        """How much nearer to `goal` training is; 0 where that is next to nothing."""
        of_twin, own = (abs(system.figures[name] - goal) for system in pair)
        margin = max(least, *(system.deviations.get(name, 0.0) for system in pair))
        return of_twin - own if abs(of_twin - own) > margin else 0.0

    gains = [gain("rep_1", human.figures.get("rep_1", 0.0) if human else 0.0, _SHARE)]
    if "ppl" in twin.figures:
        gains.append(gain("ppl", 0.0, _PERPLEXITY * favourite.figures["ppl"]))
    return max(gains) <= 0 > min(gains)


def _repetition(systems: list[System]) -> tuple[str, Callable[[System], float]]:
    """The figure of repetition that all of them have: its name, and how to read it."""
    if all("rep_1" in system.figures for system in systems):
        return "Rep-1", lambda system: system.figures["rep_1"]
    return "mean Rep/l", lambda system: mean_rep_l(system.figures)


def _share(value: float) -> str:
    return written("rep_1", value)


def _ppl(system: System) -> str:
    return written("ppl", system.figures["ppl"])
