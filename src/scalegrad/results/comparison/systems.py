"""What is compared: plain data for each system, from wherever it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalegrad import objectives
from scalegrad.decoding import Greedy, parse
from scalegrad.runs import Row

KINDS = ("trained", "decoded", "human", "paper")
HUMAN = "human"  # the objective of text that people wrote


@dataclass(frozen=True)
class Sample:
    """A beginning and how it goes on; or a picture's name, the picture as a data: address, and what is said of it.

    With `references`, what people wrote, `prefix` is an article and `continuation` its summary.
    """

    prefix: str
    continuation: str
    picture: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """One row of the table: what it is, its figures, and what stands behind them.

    `kind`: "trained" (a model under the decoding that all have), "decoded" (a trained model under another decoding,
    such as the penalty that is ScaleGrad's twin), "human" or "paper"; by default it follows from the other fields.
    `objective`, `strength`, `decoding`, `penalty` and `model` are those of `Row`. `deviations` are over `runs` seeds,
    `intervals` (low, high) are 95% bootstrap intervals over texts. `chosen` marks the strength that a validation set
    chose among several. `log` has the lines of a run's metrics.jsonl, `made` its config, environment and results.

    >>> System(objective="sg", strength=0.2).label, System(objective="mle", decoding="beam=3").label
    ('SG γ=0.2', 'MLE, beam=3')
    >>> System(objective="mle", penalty="gamma=0.2", suffix=", in the paper").label
    'MLE, decoded with γ=0.2, in the paper'
    """

    name: str = ""  # shown in place of a label made from the fields, for what is no model
    figures: Mapping[str, float] = field(default_factory=dict)
    kind: str = ""
    objective: str = ""
    strength: float | str | None = None
    decoding: str | None = None
    penalty: str | None = None
    model: str | None = None
    deviations: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    runs: int = 1
    chosen: bool = False
    suffix: str = ""  # after the label
    log: Sequence[Mapping[str, Any]] = ()
    samples: Sequence[Sample] = ()
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.kind:
            decoded = self.decoding is not None or self.penalty is not None
            kind = "human" if self.objective == HUMAN else "decoded" if decoded else "trained"
            object.__setattr__(self, "kind", kind)
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.name or self._trained() + self._decoded()}{self.suffix}"

    @property
    def key(self) -> tuple[Any, ...]:
        """What the system is: two systems of one comparison differ in it."""
        return self.name, self.model, self.objective, self.strength, self.decoding, self.penalty, self.suffix

    @property
    def gamma(self) -> float | None:
        """γ of the penalty while decoding; None where there is none, or another penalty beside it.

        >>> System(penalty="gamma=0.2").gamma, System(penalty="repetition_penalty=1.2").gamma
        (0.2, None)
        """
        if self.penalty is None:
            return None
        strategy = parse(f"{Greedy.name},{self.penalty}")
        return strategy.gamma if strategy == Greedy(gamma=strategy.gamma) else None

    @property
    def level(self) -> float | None:
        """What a curve runs over: γ of a penalty while decoding, else the strength if it is one number."""
        if self.kind == "decoded":
            return self.gamma
        return None if isinstance(self.strength, str) else self.strength

    def _trained(self) -> str:
        if self.objective == HUMAN:
            return "Human"
        if not self.objective:
            return Path(self.model).name if self.model else "model"
        return objectives.label(self.objective, self.strength)

    def _decoded(self) -> str:
        if self.kind in ("trained", "human"):
            return ""
        greedy = self.decoding in (None, Greedy.name)
        words = [] if self.decoding is None or (greedy and self.penalty) else [self.decoding]
        if self.penalty is not None:
            words.append(self.penalty if self.gamma is None else f"decoded with γ={self.gamma:g}")
        return "".join(f", {word}" for word in words)


@dataclass(frozen=True)
class Comparison:
    """Systems side by side. `corpus` is what they were scored on; `notes` say what does not compare."""

    systems: Sequence[System]
    corpus: str = ""
    notes: Sequence[str] = ()
    chosen: System | None = None
    """The model to speak of, where somebody chose one."""
    apart: frozenset[str] = frozenset()
    """Figures that were measured on different data, so that none of them is the best."""
    rows: Sequence[Row] = ()
    """The rows that the figures came from, as means over seeds."""

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
        return next((system for system in trained if system.objective == "mle"), trained[0] if trained else None)

    @property
    def favourite(self) -> System | None:
        """The model to speak of: of the ScaleGrad ones (else all but the baseline) the one nearest to human Rep-1."""
        others = [system for system in self.of_kind("trained") if system is not self.baseline]
        others = [system for system in others if self.chosen and system.key == self.chosen.key] or others
        others = [system for system in others if system.objective == "sg"] or others
        return self._nearest(others) if others else None

    @property
    def twin(self) -> System | None:
        """The baseline decoded with the γ of the favourite, a ScaleGrad model; where there is no such row, none."""
        base, favourite = self.baseline, self.favourite
        if base is None or favourite is None or favourite.objective != "sg" or favourite.level is None:
            return None  # an α is no γ, were the two numbers the same
        decoded = (system for system in self.of_kind("decoded") if system.objective == base.objective)
        return next((system for system in decoded if system.gamma == favourite.level), None)

    @property
    def spoken_of(self) -> list[System]:
        """The systems to show where there is no room for all.

        The baseline, the favourite, of each other objective the model nearest to human text, the baseline under the
        favourite's penalty, and people.
        """
        trained = self.of_kind("trained")
        shown = {system.objective for system in (self.baseline, self.favourite) if system}
        others = dict.fromkeys(s.objective for s in trained if s.objective and s.objective not in shown)
        nearest = [self._nearest([s for s in trained if s.objective == objective]) for objective in others]
        unknown = [system for system in trained if not system.objective]
        chosen = [self.baseline, self.favourite, *nearest, *unknown, self.twin, self.human]
        return [system for system in self.systems if any(system is other for other in chosen)]

    def _nearest(self, systems: Sequence[System]) -> System:
        """The one of them nearest to human Rep-1."""
        goal = self.human.figures.get("rep_1", 0.0) if self.human else 0.0
        return min(systems, key=lambda system: abs(system.figures.get("rep_1", 1.0) - goal))
