"""What is compared: plain data for each system, from wherever it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scalegrad.metrics import over_seeds

KINDS = ("trained", "decoded", "human", "paper")


@dataclass(frozen=True)
class Sample:
    """A beginning and how it goes on; or a picture's name, the picture as a data: address, and what is said of it."""

    prefix: str
    continuation: str
    picture: str = ""


@dataclass(frozen=True)
class System:
    """One row of the table: a name, its figures, and what stands behind them.

    `kind`: "trained" (a model, decoded as all of them), "decoded" (a trained model under another decoding, such as the
    penalty that is ScaleGrad's twin), "human" or "paper". `family` is the objective, mle, ul or sg: it decides the
    colour. `strength` is its γ or α, or the γ of the decoding. `deviations` are over `runs` seeds, `intervals` (low,
    high) are 95% bootstrap intervals over texts. `chosen` is the one of several strengths that a validation set chose.
    `log` are the lines of a run's metrics.jsonl, `made` its config, environment and results.
    """

    label: str
    figures: Mapping[str, float]
    kind: str = "trained"
    family: str = ""
    strength: float | None = None
    deviations: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    runs: int = 1
    chosen: bool = False
    log: Sequence[Mapping[str, Any]] = ()
    samples: Sequence[Sample] = ()
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")

    def as_dict(self) -> dict[str, Any]:
        """The row as plain JSON values, without log, texts and settings."""
        kept = ("label", "kind", "family", "strength", "runs")
        figures = {"figures": dict(self.figures), "deviations": dict(self.deviations)}
        intervals = {"intervals": {name: list(bounds) for name, bounds in self.intervals.items()}}
        chosen = {"chosen": True} if self.chosen else {}
        return {name: getattr(self, name) for name in kept} | chosen | figures | (intervals if self.intervals else {})


@dataclass(frozen=True)
class Comparison:
    """Systems side by side. `corpus` is what they were scored on; `notes` say what does not compare."""

    systems: Sequence[System]
    corpus: str = ""
    notes: Sequence[str] = ()
    chosen: str = ""  # label of the model to speak of, where somebody chose one

    def of_kind(self, *kinds: str) -> list[System]:
        """The systems of these kinds, in order."""
        return [system for system in self.systems if system.kind in kinds]

    @property
    def human(self) -> System | None:
        """The human row, where there is one."""
        return next(iter(self.of_kind("human")), None)

    @property
    def baseline(self) -> System | None:
        """What the others are held against: the first MLE model, else the first model."""
        trained = self.of_kind("trained")
        return next((system for system in trained if system.family == "mle"), trained[0] if trained else None)

    @property
    def favourite(self) -> System | None:
        """The model to speak of: of the ScaleGrad ones (else all but the baseline) the one nearest to human Rep-1."""
        others = [system for system in self.of_kind("trained") if system is not self.baseline]
        others = [system for system in others if system.label == self.chosen] or others
        others = [system for system in others if system.family == "sg"] or others
        if not others:
            return None
        goal = self.human.figures.get("rep_1", 0.0) if self.human else 0.0
        return min(others, key=lambda system: abs(system.figures.get("rep_1", 1.0) - goal))

    @property
    def twin(self) -> System | None:
        """The baseline decoded with the γ of the favourite, a ScaleGrad model; where there is no such row, none."""
        base, favourite = self.baseline, self.favourite
        if base is None or favourite is None or favourite.family != "sg" or favourite.strength is None:
            return None  # an α is no γ, were the two numbers the same
        decoded = (system for system in self.of_kind("decoded") if system.family == base.family)
        return next((system for system in decoded if system.strength == favourite.strength), None)


def merge_seeds(systems: Sequence[System]) -> System:
    """One system of several that differ by their seed: mean figures with deviations; log and samples of the first.

    >>> merged = merge_seeds([System("MLE", {"ppl": 12.0}), System("MLE", {"ppl": 14.0})])
    >>> merged.figures, merged.runs, round(merged.deviations["ppl"], 4)
    ({'ppl': 13.0}, 2, 1.4142)
    """
    spread = over_seeds([system.figures for system in systems])
    deviations = {name: found.deviation for name, found in spread.items() if found.deviation is not None}
    return replace(
        systems[0],
        figures={name: found.mean for name, found in spread.items()},
        deviations=deviations,
        intervals=systems[0].intervals if len(systems) == 1 else {},
        runs=sum(system.runs for system in systems),
    )


def spoken_of(comparison: Comparison) -> list[System]:
    """The systems to show where there is no room for all.

    The baseline, the favourite, of each other objective the model nearest to human text, the baseline under the
    favourite's penalty, and people.
    """
    goal = comparison.human.figures.get("rep_1", 0.0) if comparison.human else 0.0
    trained = comparison.of_kind("trained")
    told = [system.family for system in (comparison.baseline, comparison.favourite) if system]
    families = dict.fromkeys(system.family for system in trained if system.family and system.family not in told)
    nearest = [
        min((s for s in trained if s.family == family), key=lambda s: abs(s.figures.get("rep_1", 1.0) - goal))
        for family in families
    ]
    unknown = [system for system in trained if not system.family]
    chosen = [comparison.baseline, comparison.favourite, *nearest, *unknown, comparison.twin, comparison.human]
    return [system for system in comparison.systems if any(system is other for other in chosen)]
