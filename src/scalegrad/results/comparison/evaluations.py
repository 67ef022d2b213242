"""From evaluations (what `scalegrad evaluate` gives for a model on a corpus) to rows of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scalegrad import objectives
from scalegrad.results.comparison.systems import Sample, System

HUMAN = "Human"

Texts = Callable[[str | None], Sequence[Sample]]  # the texts of a decoding by its name; None: of what has no name


def no_texts(_: str | None) -> Sequence[Sample]:
    """For rows without texts."""
    return ()


def rows_of(label: str, objective: str, evaluation: Mapping[str, Any], texts: Texts = no_texts) -> list[System]:
    """A model's row (its first decoding) and one for each further decoding.

    `objective` is "mle", "ul=1.0", "sg=0.2" or "". Figures that are not those of open-ended generation are taken as
    they are: numbers under their names.

    >>> scores = {"language_modelling": {"ppl": 13.2}, "penalised": {"gamma=0.2": {"ppl": 14.9}}}
    >>> scores["completion"] = {"greedy": {"rep_1": 0.66}, "greedy,gamma=0.2": {"rep_1": 0.45}}
    >>> [(row.label, row.figures) for row in rows_of("MLE", "mle", scores)]
    [('MLE', {'ppl': 13.2, 'rep_1': 0.66}), ('MLE, decoded with γ=0.2', {'rep_1': 0.45, 'ppl': 14.9})]
    """
    trained = objectives.parse(objective) if objective else None
    family, strength = (trained.name, trained.value) if trained else ("", None)
    decodings = evaluation.get("completion", {})
    if "language_modelling" not in evaluation and not decodings:
        numbers = {k: v for k, v in evaluation.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        return [System(label, numbers, "trained", family, strength, samples=texts(None))]
    first = next(iter(decodings), None)
    figures = {**evaluation.get("language_modelling", {}), **decodings.get(first, {})}
    rows = [System(label, figures, "trained", family, strength, samples=texts(first) if first else ())]
    for strategy, own in decodings.items():
        if strategy != first:
            rows.append(_decoded(label, family, strategy, own, evaluation.get("penalised", {}), texts))
    return rows


def human_row(evaluation: Mapping[str, Any], texts: Texts = no_texts) -> list[System]:
    """The human row that stands with a model's figures, or none."""
    figures = {name: value for part in evaluation.get("human", {}).values() for name, value in part.items()}
    return [System(HUMAN, figures, "human", samples=texts("human"))] if figures else []


def _decoded(
    label: str, family: str, strategy: str, own: Mapping[str, float], penalised: Mapping[str, Any], texts: Texts
) -> System:
    """A model under another decoding; a penalty alone has language-modelling columns too."""
    gamma = next((word[6:] for word in strategy.split(",") if word.startswith("gamma=")), None)
    strength = None if gamma is None else float(gamma)
    if strategy == f"greedy,gamma={gamma}":
        return System(
            f"{label}, decoded with γ={strength:g}", {**own, **penalised.get(f"gamma={gamma}", {})}, "decoded", family,
            strength, samples=texts(strategy),
        )  # fmt: skip
    return System(f"{label}, {strategy}", own, "decoded", family, strength, samples=texts(strategy))
