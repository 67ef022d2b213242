"""The summarisation experiment: every objective and several seeds on one corpus, to one JSON file.

A `Plan` says what is trained and how it is decoded; `run_plan` does what is not done yet and gives all of it: what was
chosen on the validation set, and how, and every summary of the test set. From there `lab.summarization_scores` makes
figures, and `lab.reproduction.summaries` tables. On a GPU each run is a process of its own, for one of these models
alone leaves it idle most of the time.
"""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalegrad.models.memory import share_gpu
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs import Run, samples_name
from scalegrad.runs.atomic import plain, write_json
from scalegrad.runs.environment import environment
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.evaluation import evaluate_run
from scalegrad.tasks.summarization.report import validation_score
from scalegrad.tasks.summarization.selection import best
from scalegrad.tasks.summarization.training import folder_name, train, train_selector
from scalegrad.training import training_progress

CORPUS = "test"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Plan:
    """What is trained on a corpus, and how its test set is decoded.

    `tasks`: one for each seed. With the first seed all `objectives` are trained, with the others MLE and, of each
    objective with a strength, the one that the first seed's validation scores choose. β is chosen by `choose`
    validation pairs, but for objectives in `betas`. `limit`: so many test pairs. `processes`: runs at a time.
    """

    name: str
    tasks: tuple[Task, ...]
    objectives: tuple[str, ...]
    how: Evaluation
    choose: int
    betas: Mapping[str, float] = field(default_factory=dict)
    limit: int | None = None
    processes: int = 1

    def settings(self) -> dict[str, Any]:
        """What decides the figures, for the experiment's file; results of other settings are not mixed with these."""
        first = self.tasks[0]
        named = {"model": first.model, "recipe": first.recipe.record(), "objectives": self.objectives}
        decoding = {"betas": self.betas, "choose": self.choose, "limit": self.limit}
        return dict(plain({**named, **decoding, "seeds": len(self.tasks)}))


@dataclass(frozen=True)
class Job:
    """One run: train an objective with a seed, choose β, decode and score the test set.

    MLE is decoded by the paper's stochastic strategies, too.
    """

    task: Task
    objective: str
    seed: int
    out: str
    how: Evaluation
    choose: int  # validation pairs that β is chosen by
    limit: int | None  # test pairs


def run_plan(plan: Plan, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
    """What is in `folder`/NAME.json once every run of the plan is; runs lie in `folder`/NAME.

    What is done is not done again: stopped at any moment, the same call goes on. With several processes a failure ends
    no other run; they are kept, and ValueError names those that failed.
    """
    ledger = Ledger.open(folder / f"{plan.name}.json", plan)
    first = [(objective, 0) for objective in plan.objectives]
    ledger.run(plan, folder / plan.name, first, progress)
    chosen = choose_strengths(ledger.results)
    objectives = [str(parse_objective(one)) for one in plan.objectives if one == "mle"]
    objectives += [f"{name}={choice['strength']}" for name, choice in chosen.items()]
    others = [(objective, seed) for objective in objectives for seed in range(1, len(plan.tasks))]
    ledger.run(plan, folder / plan.name, others, progress)
    return ledger.as_dict()


def held_results(plan: Plan, folder: Path) -> dict[str, Any]:
    """What is in `folder`/NAME.json now, however many of the plan's runs these are."""
    return Ledger.open(folder / f"{plan.name}.json", plan).as_dict()


def run_job(job: Job, progress: Progress | None = None) -> dict[str, Any]:
    """Train and evaluate; what came out, with the summaries."""
    began = time.perf_counter()

    def callbacks(stage: str) -> list[Any]:
        return [training_progress(progress, f"training {stage}, seed {job.seed}")] if progress else []

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*cut there")  # every run would tell; the figures' notes do
        (fitted,) = train(job.task, [job.objective], job.out, callbacks=callbacks)
    run = Run.open(Path(job.out) / folder_name(parse_objective(job.objective)))
    test = job.task.pairs("test")[: job.limit]
    how = replace(job.how, strategies=STOCHASTIC if job.objective == "mle" else ())
    figures = evaluate_run(run, CORPUS, job.task.pairs("validation")[: job.choose], test, how, progress)
    return {
        "objective": job.objective,
        "seed": job.seed,
        "seconds": round(time.perf_counter() - began, 1),
        "trained": run.load("done"),
        "evaluation": figures,
        "summaries": {name: _texts(run, name) for name in figures["completion"]},
        "log": run.metrics(),
        "model_parameters": sum(weight.numel() for weight in fitted.model.parameters()),
    }


def choose_strengths(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """For each objective with a strength: the one with the highest validation score, and all scores.

    The score is the mean ROUGE of the validation set at the run's own best β; of the first seed, where all are tried.
    Where a β was given and there are no scores, there is one strength and nothing to choose.
    """
    chosen: dict[str, Any] = {}
    for name in ("ul", "sg"):
        scores = {}
        for result in results:
            objective = parse_objective(result["objective"])
            if result["seed"] == 0 and objective.name == name and isinstance(objective.strength, float):
                found = validation_score(result["evaluation"])
                scores[objective.strength] = float("nan") if found is None else found
        if scores:
            kept = {str(strength): score for strength, score in scores.items() if score == score}
            chosen[name] = {"strength": best(scores).value, "validation_scores": kept}
    return chosen


@dataclass
class Ledger:
    """The experiment's file, written anew after every run: what is done survives whatever happens to the rest."""

    path: Path
    about: dict[str, Any]
    earlier: float = 0.0  # seconds of the starts before this one
    began: float = field(default_factory=time.perf_counter)
    results: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, plan: Plan) -> Ledger:
        """The plan's file: what it holds already, or a new one. Results of other settings raise ValueError."""
        settings = plan.settings()
        if not path.exists():
            return cls(path, {"experiment": plan.name, "settings": settings, "environment": environment()})
        held = json.loads(path.read_text(encoding="utf-8"))
        for key, wanted in settings.items():
            may_differ = key in ("seeds", "objectives") or (key == "model" and Path(wanted).exists())  # a path: whose?
            if not may_differ and held["settings"].get(key, wanted) != wanted:
                raise ValueError(f"{path} holds the results of other settings (its {key} is another): name another out")
        about = {key: held[key] for key in ("experiment", "settings", "environment", "test") if key in held}
        return cls(path, about, held["seconds"], results=held["results"])

    def run(
        self, plan: Plan, folder: Path, wanted: Sequence[tuple[str, int]], progress: Progress | None = None
    ) -> None:
        """Run what of (objective, seed) is not there yet."""
        there = {(result["objective"], result["seed"]) for result in self.results}
        jobs = [_job(plan, folder, *one) for one in wanted if one not in there]
        if not jobs:
            return
        self.about["test"] = [pair.id for pair in plan.tasks[0].pairs("test")[: plan.limit]]
        if plan.processes > 1:
            seeds = sorted({job.seed for job in jobs})
            processes = min(plan.processes, len(jobs))
            with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (processes,)) as pool:
                if plan.tasks[0].recipe.selector is not None:  # once a seed, for all its objectives
                    tasks, folders = [plan.tasks[seed] for seed in seeds], [str(folder / str(seed)) for seed in seeds]
                    list(pool.map(train_selector, tasks, folders))
                self.run_in(pool, jobs, progress)
        else:
            for job in jobs:
                self.keep(run_job(job, progress))

    def run_in(self, pool: ProcessPoolExecutor, jobs: Sequence[Job], progress: Progress | None = None) -> None:
        """As many jobs at a time as the pool has processes; a failure ends no other, and is told in the end."""
        waiting = {pool.submit(run_job, job): job for job in jobs}
        for done, finished in enumerate(as_completed(waiting), start=1):
            job = waiting[finished]
            try:
                self.keep(finished.result())
            except Exception as error:
                self.failed.append({"objective": job.objective, "seed": job.seed, "error": repr(error)})
                self.write()
            if progress:
                progress("runs", done, len(jobs))
        if self.failed:
            named = "; ".join(f"{one['objective']} seed {one['seed']}: {one['error']}" for one in self.failed)
            raise ValueError(f"{len(self.failed)} of {len(jobs)} runs failed, the others are kept ({named})")

    def keep(self, result: dict[str, Any]) -> None:
        """Add a run's results, as the file will hold them."""
        self.results.append(plain(result))
        self.results.sort(key=lambda result: (result["seed"], result["objective"]))
        self.write()

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        seconds = self.earlier + time.perf_counter() - self.began
        found = {"chosen": choose_strengths(self.results), "results": self.results, "failed": self.failed}
        return {**self.about, "seconds": round(seconds, 1), **found}

    def write(self) -> None:
        """The file as it stands."""
        write_json(self.path, self.as_dict())


def _job(plan: Plan, folder: Path, objective: str, seed: int) -> Job:
    how = replace(plan.how, betas=(plan.betas[objective],)) if objective in plan.betas else plan.how
    return Job(plan.tasks[seed], objective, seed, str(folder / str(seed)), how, plan.choose, plan.limit)


def _begin(processes: int) -> None:
    """In every process: a part of the GPU, and no warnings, for each would tell of the same cuts."""
    warnings.simplefilter("ignore")
    share_gpu(processes)


def _texts(run: Run, name: str) -> list[str]:
    return [record["continuation"] for record in run.load(f"samples/{samples_name(CORPUS, name)}")]
