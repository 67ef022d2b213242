"""Grids of γ and α with seeds: runs that go on where they stopped, in parallel over GPUs, and a recommendation."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import Queue
from typing import Any

import torch

from scalegrad._extras import need
from scalegrad.decoding import load
from scalegrad.integrations.objective import Objective
from scalegrad.lab.recommendation import Recommendation, recommend
from scalegrad.report.comparison import Comparison, compare_runs, find_runs, plots, write_page
from scalegrad.report.comparison.sensitivity import sensitivity_plots
from scalegrad.report.comparison.terminal import markdown
from scalegrad.report.figure import save_figure
from scalegrad.runs import Run, check_writable_folder, write_json, write_text
from scalegrad.tasks.open_ended.corpora import Corpus, find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate_run, saved_gamma
from scalegrad.tasks.open_ended.training import TrainConfig, train
from scalegrad.tasks.training import training_progress

GAMMAS = tuple(round(0.1 * i, 1) for i in range(1, 10))  # the paper's grid, and unlikelihood's two beside it
ALPHAS = (0.5, 1.0)

_RESULTS = {"figures": "sweep.json", "page": "report.html", "table": "table.md", "plots": "plots"}

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Job:
    """One run of a sweep: train, then score."""

    objective: str
    seed: int

    @property
    def name(self) -> str:
        """Its folder: "sg-0.2-seed-0"."""
        return f"{self.objective.replace('=', '-')}-seed-{self.seed}"


@dataclass(frozen=True)
class Sweep:
    """What to try: MLE, each γ and each α, for `seeds` seeds, trained as `config` says and scored on `corpus`.

    `config`'s objective is what varies; its seed is the first. The MLE model is also decoded under a penalty of every
    γ. `chunks`, `prefixes` and `new_tokens` as for `evaluate`. Score on validation text: the test set is for the end.
    """

    config: TrainConfig
    gammas: tuple[float, ...] = GAMMAS
    alphas: tuple[float, ...] = ALPHAS
    seeds: int = 3
    corpus: str = "wikitext-103:valid"
    chunks: int | None = None
    prefixes: int | None = None
    new_tokens: int = 100

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")
        if self.chunks is not None and self.chunks < 1:
            raise ValueError(f"chunks must be at least 1, not {self.chunks}: the budget is of perplexity")
        if not self.gammas:
            raise ValueError("gammas is empty; expected at least one γ in (0, 1]")
        for values in (self.gammas, self.alphas):
            if len(set(values)) < len(values):
                raise ValueError(f"a strength is named twice in {', '.join(f'{value:g}' for value in values)}")
        self.jobs()  # every strength is one its objective takes

    def jobs(self) -> list[Job]:
        """All runs, a whole grid for each seed: stopped in the middle, the curve is there already.

        >>> [job.name for job in Sweep(TrainConfig("base", ("text",)), (0.2,), (1.0,), seeds=1).jobs()]
        ['mle-seed-0', 'ul-1.0-seed-0', 'sg-0.2-seed-0']
        """
        objectives = [
            Objective("mle"),
            *(Objective("ul", alpha) for alpha in self.alphas),
            *(Objective("sg", gamma) for gamma in self.gammas),
        ]
        first = self.config.settings.seed
        return [Job(str(o), seed) for seed in range(first, first + self.seeds) for o in objectives]

    def strategies(self, job: Job) -> tuple[str, ...]:
        """Greedy; for MLE also every penalty, the decoding-time curve."""
        return (
            ("greedy", *(f"greedy,gamma={gamma}" for gamma in self.gammas)) if job.objective == "mle" else ("greedy",)
        )


@dataclass(frozen=True)
class Swept:
    """What a sweep found."""

    comparison: Comparison
    recommendation: Recommendation

    def as_dict(self) -> dict[str, Any]:
        """Rows and recommendation as plain JSON values."""
        return {
            "corpus": self.comparison.corpus,
            "recommendation": asdict(self.recommendation),
            "rows": [row.as_dict() for row in self.comparison.systems],
            "notes": list(self.comparison.notes),
        }


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    budget: float = 0.05,
    devices: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Train and score what is not there yet in the folder `out`, and say which γ to take.

    `devices` are names for CUDA_VISIBLE_DEVICES, a process each; by default every GPU where there are several, else
    everything happens in this process. Stopped at any moment, the same call goes on; `overwrite` starts every run
    anew.
    """
    folder = check_writable_folder(out, "out")
    corpus = find_corpus(sweep.corpus)
    jobs = sweep.jobs()
    devices = _gpus() if devices is None else devices
    if len(devices) > 1:
        _in_parallel(sweep, jobs, folder, devices, overwrite, progress)
    else:
        for done, job in enumerate(jobs):
            if progress:
                progress("runs", done, len(jobs))
            run_job(sweep, job, folder, corpus, overwrite=overwrite, progress=progress)
    comparison = compare_runs(find_runs([folder / job.name for job in jobs]), corpus.name)
    found = recommend(comparison, budget)
    chosen = next(
        (s.label for s in comparison.of_kind("trained") if s.family == "sg" and s.strength == found.gamma), ""
    )
    return Swept(replace(comparison, chosen=chosen), found)


def write_results(found: Swept, out: str | Path) -> dict[str, Path]:
    """Write sweep.json, report.html, table.md and plots/ into the folder of the sweep; where each of them is."""
    folder = Path(out)
    paths = {name: folder / file for name, file in _RESULTS.items()}
    extra, said = sensitivity_plots(found.comparison), [found.recommendation.sentence]
    write_json(paths["figures"], found.as_dict())
    write_text(paths["table"], markdown(found.comparison, said))
    write_page(found.comparison, paths["page"], extra, said=said)
    check_writable_folder(paths["plots"], "plots")
    for plot in (*extra, *plots(found.comparison)):
        save_figure(plot.figure, paths["plots"] / f"{plot.name}.png")
    return paths


def run_job(
    sweep: Sweep,
    job: Job,
    folder: Path,
    corpus: Corpus | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Train one run into `folder`/NAME and score it; what is done already is left as it is, but for `overwrite`."""
    corpus = corpus or find_corpus(sweep.corpus)
    config = replace(
        sweep.config,
        objective=Objective.parse(job.objective),
        settings=replace(sweep.config.settings, seed=job.seed),
    )
    callbacks = [] if progress is None else [training_progress(progress, f"training {job.name}")]
    run = train(config, folder / job.name, overwrite=overwrite, callbacks=callbacks).run
    if not _is_scored(sweep, job, run, corpus):
        _free_memory()
        model, tokenizer = load(str(run.model_path), trust_remote_code=sweep.config.trust_remote_code)
        evaluate_run(
            run, model, tokenizer, corpus, strategies=sweep.strategies(job), gamma=saved_gamma(model.config),
            chunks=sweep.chunks, prefixes=sweep.prefixes, new_tokens=sweep.new_tokens,
            overwrite=overwrite or _was_scored_otherwise(run, corpus), progress=progress,
        )  # fmt: skip
    _free_memory()


def _is_scored(sweep: Sweep, job: Job, run: Run, corpus: Corpus) -> bool:
    """Whether the run has every figure asked for, under this protocol."""
    found = _evaluation(run, corpus)
    protocol = found.get("protocol", {})
    if protocol.get("corpus_sha256") != corpus.checksum or protocol.get("new_tokens") != sweep.new_tokens:
        return False
    for name, wanted in (("chunks", sweep.chunks), ("prefixes", sweep.prefixes)):
        if wanted != 0 and protocol[name] != min(protocol[f"all_{name}"], math.inf if wanted is None else wanted):
            return False
    return sweep.prefixes == 0 or all(strategy in found.get("completion", {}) for strategy in sweep.strategies(job))


def _was_scored_otherwise(run: Run, corpus: Corpus) -> bool:
    """Whether there are texts of another protocol, to be made anew; those of a stopped run are gone on with."""
    return bool(_evaluation(run, corpus))


def _evaluation(run: Run, corpus: Corpus) -> dict[str, Any]:
    found = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    return dict(found.get(corpus.name, {}))


def _gpus() -> list[str]:
    """Names of the GPUs for CUDA_VISIBLE_DEVICES, where there is more than one."""
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (named.split(",") if named else [str(i) for i in range(count)])[:count] if count > 1 else []


def _in_parallel(
    sweep: Sweep,
    jobs: Sequence[Job],
    folder: Path,
    devices: Sequence[str],
    overwrite: bool,
    progress: Progress | None,
) -> None:
    """A process for each device takes the next job when it is free; the first failure ends the sweep."""
    context = multiprocessing.get_context("spawn")
    free: Any = context.Queue()
    for device in devices:
        free.put(device)
    with ProcessPoolExecutor(len(devices), context, _take_device, (free,)) as pool:
        waiting = {pool.submit(run_job, sweep, job, folder, overwrite=overwrite): job for job in jobs}
        for done, finished in enumerate(as_completed(waiting), start=1):
            try:
                finished.result()
            except (ValueError, OSError) as error:
                raise ValueError(f"{waiting[finished].name}: {error}") from None
            finally:
                if finished.exception() is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
            if progress:
                progress("runs", done, len(jobs))


def _take_device(free: Queue[str]) -> None:
    """Before anything in this process looks at a GPU: see one only."""
    os.environ["CUDA_VISIBLE_DEVICES"] = free.get()
    logging = need("transformers", extra="train").utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _free_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
