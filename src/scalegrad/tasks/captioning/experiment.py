"""The paper's captioning experiment: objectives trained alike, β chosen on validation, test figures read once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scalegrad.decoding import Greedy, Strategy, parse
from scalegrad.objectives import Objective
from scalegrad.runs import Job, Row, Run, rows_of, run_jobs, run_name, samples_name
from scalegrad.runs.progress import Progress
from scalegrad.tasks.captioning.config import PAPER_OBJECTIVES
from scalegrad.tasks.captioning.dataset import Example, Paragraphs
from scalegrad.tasks.captioning.scoring import BETAS, TRIGRAMS, choose_beta, describe, repetitiveness, score
from scalegrad.tasks.captioning.splits import Scenes, Source, forget_splits, load_splits
from scalegrad.tasks.captioning.training import SCENES, SCENES_LARGE, Recipe, record, train_captioner
from scalegrad.tasks.captioning.vocabulary import build_tokenizer
from scalegrad.training import Reporter

PLAIN, BLOCKED = Greedy(), Greedy(soft_block=TRIGRAMS)  # every captioner, each with the β that suits it best
TWIN = Greedy(gamma=0.5)  # MLE under ScaleGrad's penalty
STOCHASTIC = tuple(map(parse, ("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100")))  # MLE
PLACES = {"data.regions": ()}  # where a run's config.json may name a file or folder
TEST, VALIDATION = "test", "valid"  # the splits of rows
CHOICE = "cider"  # the figure that settings are chosen by, on the validation set

# How many scenes, and what is trained on them: minutes on a laptop, or minutes on a GPU.
SCALES: dict[str, tuple[Scenes, Recipe]] = {
    "small": (Scenes(4_000, 200, 200), SCENES),
    "large": (Scenes(12_000, 500, 1_000), SCENES_LARGE),
}

Betas = Mapping[str, Sequence[float]]  # of a strategy, by its text, the β to choose from


@dataclass(frozen=True)
class Captioning:
    """One captioner: what it is trained on, how, for which objective, and which β its decodings choose from."""

    source: Source
    recipe: Recipe
    folder: Path
    objective: Objective
    seed: int = 0
    betas: Betas | None = None

    def create(self, *, overwrite: bool = False) -> Run:
        """Its run's folder."""
        config = record(self.recipe, self.objective, self.source.about(), self.seed)
        return Run.create(self.folder, config, overwrite=overwrite, places=PLACES)

    def is_done(self) -> bool:
        """Whether it is trained and every decoding scored."""
        run = Run.open(self.folder)
        return run.finished and all(run.evaluation(self.settings(one)) for one in self.strategies())

    def strategies(self) -> tuple[Strategy, ...]:
        """How its test images are described."""
        return (PLAIN, BLOCKED, *((TWIN, *STOCHASTIC) if self.objective.name == "mle" else ()))

    def choices(self, strategy: Strategy) -> Sequence[float]:
        """The β that a strategy chooses from: each greedy search has its own, else lengths are compared."""
        if not isinstance(strategy, Greedy):
            return ()
        return (self.betas or {}).get(str(strategy), BETAS)

    def settings(self, strategy: Strategy) -> dict[str, Any]:
        """What decides a decoding's figures."""
        data = self.source.about()
        about = {"corpus": data["name"], "split": TEST, "checksum": data["test"], "validation": data["valid"]}
        return {**about, "decoding": strategy.decoding, "penalty": strategy.penalty, "betas": self.choices(strategy)}


def train_captioners(
    source: Source,
    recipe: Recipe,
    folder: Path,
    objectives: Sequence[Objective] = PAPER_OBJECTIVES,
    seeds: Sequence[int] = (0,),
    *,
    betas: Mapping[str, Betas] | None = None,
    processes: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Run]:
    """Train and score every objective with every seed, each in a run of `folder`; what is done is not done again.

    `betas`: by the objective's name, as for `Captioning`. `processes` trainings run at a time; by default as many as
    `trainings_at_a_time` says. A failure ends no other training and raises `runs.JobsFailed` at the end.
    """
    wanted = [
        Captioning(source, recipe, folder / run_name(one, seed), one, seed, (betas or {}).get(str(one)))
        for seed in seeds
        for one in objectives
    ]
    # Created here, so that a folder with runs of other settings is refused before anything starts.
    runs = [one.create(overwrite=overwrite) for one in wanted]
    jobs = [Job(one.folder.name, train_and_score, (one,), one.is_done) for one in wanted]
    try:
        run_jobs(jobs, folder, processes=processes or trainings_at_a_time(len(jobs)), progress=progress)
    finally:
        forget_splits()
    return runs


def trainings_at_a_time(runs: int) -> int:
    """All of a few trainings side by side on a CPU: threads of one training would mostly wait for each other."""
    return 1 if torch.accelerator.is_available() else min(runs, 2 * (os.cpu_count() or 1))


def train_and_score(captioning: Captioning, progress: Progress | None = None) -> Run:
    """Train one captioner and score it on the test set.

    Its folder gets a row for each figure of each decoding and of what people wrote, the texts (samples/), and for each
    decoding a line in evaluations.jsonl. For a chosen β there is also a row of the split "valid".
    """
    run, splits = captioning.create(), load_splits(captioning.source, progress)
    tokenizer = build_tokenizer((example.paragraph for example in splits.train), captioning.recipe.more_than)
    name = f"training {captioning.objective.label}, seed {captioning.seed}"
    fitted = train_captioner(
        captioning.objective,
        Paragraphs(splits.train, tokenizer),
        Paragraphs(splits.valid, tokenizer),
        tokenizer,
        run,
        captioning.recipe,
        seed=captioning.seed,
        regions_from=splits.regions_from,
        callbacks=[Reporter(progress, name)] if progress else [],
    )
    _measure_people(run, captioning.source.about()["name"], splits.test)
    model = fitted.model.eval()
    for number, strategy in enumerate(captioning.strategies(), start=1):
        if run.evaluation(captioning.settings(strategy)) is None:
            _measure(run, captioning, strategy, model, tokenizer, splits.valid, splits.test, progress)
        if progress:
            progress("describing test images", number, len(captioning.strategies()))
    return run


def samples(texts: Sequence[str], examples: Sequence[Example]) -> list[dict[str, str]]:
    """A record for each paragraph: its image's name is the prefix."""
    return [{"prefix": item.image_id, "continuation": text} for item, text in zip(examples, texts, strict=True)]


def rows_of_texts(figures: Mapping[str, float], **about: Any) -> list[Row]:
    """The rows of what `score` and `repetitiveness` give."""
    texts = int(figures["n_texts"])
    return rows_of({name: {"value": v, "n": texts} for name, v in figures.items() if name != "n_texts"}, **about)


def _measure_people(run: Run, corpus: str, test: Sequence[Example]) -> None:
    """What people wrote, before anything else: once every decoding is scored, the run counts as done."""
    references = [item.paragraph for item in test]
    about = {"task": "captioning", "corpus": corpus, "split": TEST, "objective": "human"}
    run.save(f"samples/{samples_name(corpus, TEST, 'human')}", samples(references, test))
    if not any(row.objective == "human" for row in run.rows()):
        run.add(rows_of_texts(repetitiveness(references), **about))


def _measure(
    run: Run,
    captioning: Captioning,
    strategy: Strategy,
    model: Any,
    tokenizer: Any,
    valid: Sequence[Example],
    test: Sequence[Example],
    progress: Progress | None,
) -> None:
    """Choose the strategy's β, describe the test images and score: rows, texts and a line for the run's folder."""
    settings, began = captioning.settings(strategy), time.perf_counter()
    used, scores = strategy, dict[str, float]()
    if isinstance(strategy, Greedy):
        used, scores = choose_beta(model, tokenizer, valid, strategy, captioning.choices(strategy), progress)
    regions, keys = [item.regions for item in test], [item.image_id for item in test]
    texts = describe(model, tokenizer, regions, used, keys=keys, seed=captioning.seed)
    system = {**run.about(), **{name: settings[name] for name in ("corpus", "decoding", "penalty")}}
    rows = rows_of_texts(score(texts, [item.paragraph for item in test]), **system, split=TEST)
    if isinstance(used, Greedy):
        rows += rows_of({"beta": used.gnmt}, **system, split=TEST)
        rows += rows_of({CHOICE: {"value": max(scores.values()), "n": len(valid)}}, **system, split=VALIDATION)
    run.save(f"samples/{samples_name(settings['corpus'], TEST, strategy)}", samples(texts, test))
    seconds = round(time.perf_counter() - began, 2)
    run.add(rows, settings, strategy=str(used), validation_scores=scores, seconds=seconds)
