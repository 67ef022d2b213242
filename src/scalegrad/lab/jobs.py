"""Runs to be trained and then measured: what is done already is left as it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from scalegrad.data import Problems
from scalegrad.decoding import load
from scalegrad.runs import Run, run_name
from scalegrad.runs import jobs as runner
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.config import Evaluation, TrainConfig
from scalegrad.tasks.open_ended.corpora import NEW_TOKENS, Corpus, find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate_run, is_measured, saved_gamma
from scalegrad.tasks.open_ended.training import check_folder, find_finished, train
from scalegrad.training import Reporter


class Measured(Protocol):
    """Something to be measured of a trained run."""

    def is_done(self, run: Run) -> bool:
        """Whether the run has every figure asked for, measured as asked; nothing is loaded to tell."""
        ...

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """Measure what is missing, and leave it in the run's folder."""
        ...


@dataclass(frozen=True)
class Scoring:
    """The columns of the paper's tables on `corpus`, its texts by `strategies`; the rest as for `evaluate`.

    `name` stands in the rows in place of the corpus' own, so that a study of fewer prefixes does not replace them.
    """

    corpus: str
    strategies: tuple[str, ...] = ("greedy",)
    chunks: int | None = None
    prefixes: int | None = None
    new_tokens: int = NEW_TOKENS
    name: str = ""
    skip_bad: bool = False  # whether lines of the corpus that cannot be read are left out

    def is_done(self, run: Run) -> bool:
        """Whether every column and decoding is there, measured so."""
        return is_measured(run, self._corpus(), self.options())

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """What was measured in another way is measured anew; what a stopped run left is gone on with."""
        options = self.options(saved_gamma(model.config))
        corpus = self._corpus()
        evaluate_run(run, model, tokenizer, corpus, options, overwrite=overwrite, remake=True, progress=progress)

    def options(self, gamma: float | None = None) -> Evaluation:
        """How `evaluate` is to measure; `gamma` is that of the calibrated perplexity."""
        return Evaluation(
            strategy=self.strategies, calibrate=gamma, chunks=self.chunks, prefixes=self.prefixes,
            new_tokens=self.new_tokens,
        )  # fmt: skip

    def _corpus(self) -> Corpus:
        corpus = find_corpus(self.corpus, problems=Problems(self.skip_bad))
        return replace(corpus, name=self.name or corpus.name)


@dataclass(frozen=True)
class Job:
    """One run: to be trained as `config` says, then measured."""

    config: TrainConfig
    measured: tuple[Measured, ...] = ()
    skip_bad: bool = False  # whether records that cannot be read are left out

    @property
    def objective(self) -> str:
        """Its objective as text: "sg=0.2"."""
        return str(self.config.objective)

    @property
    def name(self) -> str:
        """Its folder: "sg-0.2-seed-0"."""
        return run_name(self.objective, self.config.settings.seed)


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Each run once, in the order in which they are named first, with everything that is asked of it."""
    by_name: dict[str, Job] = {}
    for job in jobs:
        first = by_name.get(job.name, replace(job, measured=()))
        by_name[job.name] = replace(first, measured=tuple(dict.fromkeys((*first.measured, *job.measured))))
    return list(by_name.values())


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    devices: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Run]:
    """Do what is not done yet of `jobs` by `scalegrad.runs.run_jobs`, into folders of their names; their runs.

    A folder that holds a run of another config is refused before anything starts. Where a mistake of the user's fails
    them all, such as a missing file, that mistake is raised.
    """
    for job in jobs if not overwrite else ():
        check_folder(job.config, folder / job.name)
    waiting = [
        runner.Job(job.name, run_job, (job, folder, overwrite), partial(is_done, job, folder, overwrite))
        for job in jobs
    ]
    try:
        runner.run_jobs(waiting, folder, devices=devices, progress=progress)
    except runner.JobsFailed as failed:
        mistakes = [error for error in failed.errors.values() if isinstance(error, (ValueError, OSError))]
        if len(mistakes) == len(jobs):
            raise mistakes[0] from None
        raise
    return [Run.open(folder / job.name) for job in jobs]


def run_job(job: Job, folder: Path, overwrite: bool = False, *, progress: Progress | None = None) -> None:
    """Train one run into `folder`/NAME and measure it; what is done already is left as it is, but for `overwrite`."""
    run = None if overwrite else find_finished(job.config, folder / job.name)
    if run is None:
        callbacks = [] if progress is None else [Reporter(progress, f"training {job.name}")]
        problems = Problems(job.skip_bad)
        run = train(
            job.config,
            folder / job.name,
            overwrite=overwrite,
            callbacks=callbacks,
            problems=problems,
            progress=progress,
        ).run
        if problems.count:
            warnings.warn(f"data: {problems}", stacklevel=2)
    waiting = [item for item in job.measured if overwrite or not item.is_done(run)]
    if waiting:
        runner.free_gpu_memory()
        model, tokenizer = load(str(run.model_path), trust_remote_code=job.config.trust_remote_code)
        for item in waiting:
            item.measure(run, model, tokenizer, overwrite=overwrite, progress=progress)


def is_done(job: Job, folder: Path, overwrite: bool = False) -> bool:
    """Whether the run of `job` in `folder` is trained and has every figure; nothing is loaded to tell."""
    run = None if overwrite else find_finished(job.config, folder / job.name)
    return run is not None and all(item.is_done(run) for item in job.measured)
