"""From the experiment's summaries to its figures: scores with intervals, over seeds, and paired differences from MLE.

Needs no GPU. An interval is a 95% bootstrap over texts, of the mean over seeds of each text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad import objectives
from scalegrad.counts import are, counted
from scalegrad.data.pairs import Pair
from scalegrad.metrics import bootstrap, moverscores, paired_bootstrap, permutation_test
from scalegrad.metrics.significance import mean as mean_of
from scalegrad.objectives import Objective
from scalegrad.runs.atomic import write_json
from scalegrad.tasks.summarization.scoring import human, per_text

Floats = NDArray[np.float64]
Values = dict[str, Floats]

FIGURES = (
    "rouge_1", "rouge_2", "rouge_l", "moverscore_1", "rep_1", "rep_2", "rep_3", "words", "novelty_1", "novelty_2",
)  # fmt: skip


def scores_beside(
    path: Path, experiment: dict[str, Any], pairs: Callable[[], Sequence[Pair]], device: str = "cpu"
) -> dict[str, Any]:
    """`score_experiment`'s figures, kept in `path`: made anew where runs were added since. `pairs()`: the test set."""
    runs = [{"objective": one["objective"], "seed": one["seed"], **one["trained"]} for one in experiment["results"]]
    if path.exists():
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if held["runs"] == runs:
            return held
    write_json(path, score_experiment(experiment, pairs(), device=device))
    return dict(json.loads(path.read_text(encoding="utf-8")))


def score_experiment(
    experiment: dict[str, Any], pairs: Sequence[Pair], mover: bool = True, device: str = "cpu"
) -> dict[str, Any]:
    """Rows of figures: each objective (mean over its seeds), and the MLE model under each stochastic decoding."""
    by_id = {pair.id: pair for pair in pairs}
    missing = [name for name in experiment["test"] if name not in by_id]
    if missing:
        of = counted(len(experiment["test"]), "article")
        raise ValueError(f"test: {len(missing):,} of {of} {are(len(missing))} not there ({missing[0]}, …)")
    test = [by_id[name] for name in experiment["test"]]
    systems = _systems(experiment, test, mover, device)
    base = systems.get("MLE")
    rows = {label: _row(values, base if label != "MLE" else None) for label, values in systems.items()}
    chosen = {
        str(Objective(name, choice["strength"]).label): choice["validation_scores"]
        for name, choice in experiment["chosen"].items()
    }
    betas = {
        f"{result['objective']} seed {result['seed']}": result["evaluation"]["length_normalisation"]
        for result in experiment["results"]
    }
    notes = (note for result in experiment["results"] for note in result["evaluation"].get("notes", []))
    kept = ("experiment", "settings", "environment", "seconds")
    return {
        **{key: experiment[key] for key in kept},
        "rows": rows,
        "human": human(test),
        "chosen_on_validation": chosen,
        "length_normalisation": betas,
        "runs": [
            {"objective": result["objective"], "seed": result["seed"], **result["trained"]}
            for result in experiment["results"]
        ],
        "test_texts": len(test),
        "notes": list(dict.fromkeys(notes)),
        "model_parameters": experiment["results"][0].get("model_parameters"),
    }


def _systems(
    experiment: dict[str, Any], test: Sequence[Pair], mover: bool, device: str
) -> dict[str, dict[int, Values]]:
    """Label → seed → the figures of every text."""
    labels, texts = [], []
    for result in experiment["results"]:
        for strategy, written in result["summaries"].items():
            label = objectives.parse(result["objective"]).label + ("" if strategy == "beam" else f", {strategy}")
            labels.append((label, result["seed"]))
            texts.append(written)
    figures = [per_text(written, test, mover=False) for written in texts]
    if mover:
        scores = moverscores(texts, [list(pair.references) for pair in test], device=device)
        figures = [{**own, "moverscore_1": 100 * score.per_text} for own, score in zip(figures, scores, strict=True)]
    systems: dict[str, dict[int, Values]] = {}
    for (label, seed), own in zip(labels, figures, strict=True):
        systems.setdefault(label, {})[seed] = {name: own[name] for name in FIGURES if name in own}
    return systems


def _row(seeds: dict[int, Values], base: dict[int, Values] | None) -> dict[str, Any]:
    """A system's figures; against the baseline of the same seeds, text by text, where there is one."""
    mean = over_seeds(list(seeds.values()))
    figures: dict[str, Any] = {}
    for name, column in mean.items():
        interval = bootstrap(column)
        figures[name] = {"mean": interval.estimate, "low": interval.low, "high": interval.high}
        if len(seeds) > 1:
            figures[name]["deviation_over_seeds"] = _deviation([mean_of(values[name]) for values in seeds.values()])
    row: dict[str, Any] = {"seeds": len(seeds), "figures": figures}
    both = [seed for seed in seeds if base and seed in base]  # another seed is another training: not to be compared
    if base and both:
        ours, theirs = ([side[seed] for seed in both] for side in (seeds, base))
        row["minus_mle"] = {name: _difference(ours, theirs, name) for name in mean}
    return row


def over_seeds(seeds: Sequence[Values]) -> Values:
    """Each text's mean over seeds; a text without a figure in one of them has none."""
    return {name: np.mean([values[name] for values in seeds], axis=0) for name in seeds[0]}


def _difference(ours: Sequence[Values], theirs: Sequence[Values], name: str) -> dict[str, float]:
    """Two systems with the same seeds: the mean difference, its interval over texts and its deviation over seeds."""
    first, second = over_seeds(ours)[name], over_seeds(theirs)[name]
    kept = ~(np.isnan(first) | np.isnan(second))
    if not kept.any():
        return {"mean": float("nan"), "low": float("nan"), "high": float("nan"), "p": 1.0}
    interval = paired_bootstrap(first[kept], second[kept])
    test = permutation_test(first[kept], second[kept], resamples=2000)
    found = {"mean": interval.estimate, "low": interval.low, "high": interval.high, "p": test.p_value}
    if len(ours) > 1:
        gaps = [mean_of(one[name]) - mean_of(other[name]) for one, other in zip(ours, theirs, strict=True)]
        found["deviation_over_seeds"] = _deviation(gaps)
    return found


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1))
