"""What each summariser gains over MLE of the same seeds, text by text: rows with the metrics NAME_minus_mle.

An interval is a 95% bootstrap over texts, of the mean over seeds of each text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scalegrad.data.pairs import Pair
from scalegrad.decoding import Strategy
from scalegrad.metrics import paired_bootstrap, permutation_test
from scalegrad.metrics.significance import mean as mean_of
from scalegrad.runs import Row, Run, samples_name
from scalegrad.tasks.summarization.scoring import per_text

Values = dict[str, NDArray[np.float64]]  # metric → a value for each text
System = tuple[str | None, float | str | None]  # objective and strength

MLE: System = ("mle", None)
METRICS = (
    "rouge_1", "rouge_2", "rouge_l", "moverscore_1", "rep_1", "rep_2", "rep_3", "words", "novelty_1", "novelty_2",
)  # fmt: skip


def minus_mle(metric: str) -> str:
    """The name of a metric's difference from MLE."""
    return f"{metric}_minus_mle"


def differences(
    runs: Sequence[Run], corpus: str, strategy: Strategy, test: Sequence[Pair], mover: bool, device: str
) -> list[Row]:
    """Rows of every objective but MLE, of the seeds that MLE has, too: another seed is another training."""
    systems: dict[System, dict[int, Values]] = {}
    for run in runs:
        records = run.load(f"samples/{samples_name(corpus, 'test', strategy)}")
        written = {record["id"]: record["continuation"] for record in records}
        values = per_text([written[pair.id] for pair in test], test, mover=mover, device=device)
        systems.setdefault(_system(run), {})[_seed(run)] = values
    base = systems.pop(MLE, {})
    rows = []
    for (objective, strength), own in systems.items():
        seeds = [seed for seed in own if seed in base]
        about = Row(
            "", None, task="summarization", model=str(runs[0].config["model"]), objective=objective, strength=strength,
            decoding=strategy.decoding, penalty=strategy.penalty, corpus=corpus, split="test", n=len(seeds),
        )  # fmt: skip
        for metric in METRICS if seeds else ():
            if metric in own[seeds[0]]:
                rows += _difference(
                    about, metric, [own[seed][metric] for seed in seeds], [base[s][metric] for s in seeds]
                )
    return rows


def is_complete(rows: Sequence[Row], runs: Sequence[Run]) -> bool:
    """Whether there are rows of every objective that has seeds in common with MLE, and of all these seeds."""
    seeds: dict[System, set[int]] = {}
    for run in runs:
        seeds.setdefault(_system(run), set()).add(_seed(run))
    base = seeds.pop(MLE, set())
    wanted = Counter({system: len(own & base) for system, own in seeds.items()})
    there = {(row.objective, row.strength): row.n for row in rows}
    return {system: n for system, n in wanted.items() if n} == there


def _system(run: Run) -> System:
    about = run.about()
    return about["objective"], about["strength"]


def _seed(run: Run) -> int:
    return int(run.config["recipe"]["writer"]["seed"])


def _difference(
    about: Row, metric: str, ours: Sequence[NDArray[np.float64]], theirs: Sequence[NDArray[np.float64]]
) -> list[Row]:
    """The mean difference, its interval over texts, its deviation over seeds; and the p of a permutation test."""
    first, second = np.mean(ours, axis=0), np.mean(theirs, axis=0)
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return []
    interval = paired_bootstrap(first[both], second[both])
    test = permutation_test(first[both], second[both], resamples=2000)
    gaps = [mean_of(one) - mean_of(other) for one, other in zip(ours, theirs, strict=True)]
    sd = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else None
    name = minus_mle(metric)
    return [
        replace(about, metric=name, value=interval.estimate, low=interval.low, high=interval.high, sd=sd),
        replace(about, metric=f"{name}_p", value=test.p_value),
    ]
