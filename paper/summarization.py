"""The summarisation experiment: what is trained on a corpus and decoded how, as jobs, and the runs that come of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from paper.differences import differences, is_complete
from scalegrad.data import Pair, Problems
from scalegrad.objectives import Objective
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs import Job, Row, Run, read_rows, run_name, write_lines
from scalegrad.runs.atomic import plain
from scalegrad.runs.progress import Progress
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.evaluation import CHOICE, best, evaluate_run
from scalegrad.tasks.summarization.training import train, train_selector
from scalegrad.training import Reporter

DIFFERENCES = "differences.jsonl"


@dataclass(frozen=True)
class Plan:
    """What is trained on a corpus, and how its test set is decoded.

    `tasks`: one for each seed. With the first seed all `objectives` are trained, with the others MLE and, of each
    objective with a strength, the one that the first seed's validation scores choose. β is chosen by `choose`
    validation pairs, but for objectives in `betas`. `limit`: so many test pairs. `corpus`: the name in rows.
    """

    corpus: str
    tasks: tuple[Task, ...]
    objectives: tuple[str, ...]
    how: Evaluation
    choose: int
    betas: Mapping[str, float] = field(default_factory=dict)
    limit: int | None = None

    def test(self) -> Sequence[Pair]:
        """The pairs to test on."""
        return self.tasks[0].pairs("test", Problems(skip=True))[: self.limit]

    def evaluation(self, objective: str) -> Evaluation:
        """How the runs of an objective are decoded: MLE by the paper's stochastic strategies, too."""
        how = replace(self.how, strategies=STOCHASTIC if objective == "mle" else ())
        return replace(how, betas=(self.betas[objective],)) if objective in self.betas else how


def jobs_of(plan: Plan, folder: Path) -> list[Job]:
    """What can be run now: stage 1, then the first seed, then the chosen strengths with the others, then differences.

    Runs lie in `folder`. What is done is not done again.
    """
    seeds = range(len(plan.tasks))
    stages = [
        [_selector_job(plan, seed, folder) for seed in seeds if plan.tasks[seed].recipe.selector is not None],
        [_job(plan, objective, 0, folder) for objective in plan.objectives],
        [_job(plan, objective, seed, folder) for seed in seeds[1:] for objective in chosen(plan, folder)],
        [_differences_job(plan, folder)],
    ]
    first, *later = [stage for stage in stages if not all(job.is_done() for job in stage)] or [[]]
    del later  # they depend on what the first gives
    return first


def runs_of(plan: Plan, folder: Path) -> list[Run]:
    """The runs of the plan that are trained and evaluated."""
    wanted = [(objective, 0) for objective in plan.objectives]
    wanted += [(objective, seed) for seed in range(1, len(plan.tasks)) for objective in chosen(plan, folder)]
    places = [(folder / run_name(parse_objective(objective), seed), objective, seed) for objective, seed in wanted]
    return [Run.open(path) for path, objective, seed in places if _is_evaluated(plan, objective, seed, path)]


def difference_rows(plan: Plan, folder: Path) -> list[Row]:
    """What each system gains over MLE, as far as it was computed."""
    return read_rows(folder / DIFFERENCES)


def chosen(plan: Plan, folder: Path) -> list[str]:
    """MLE, and of each objective the strength with the best validation score of the first seed; the only one anyway."""
    scores: dict[str, dict[float, float]] = {}
    for text in plan.objectives:
        objective, path = parse_objective(text), folder / run_name(parse_objective(text), 0)
        rows = Run.open(path).rows() if (path / "config.json").is_file() else []
        score = next((row.value for row in rows if (row.corpus, row.metric) == (plan.corpus, CHOICE)), None)
        if objective.value is not None:
            scores.setdefault(objective.name, {})[objective.value] = float("-inf") if score is None else score
    picked = [Objective(name, best(own).value) for name, own in scores.items()]
    return [*(text for text in plan.objectives if text == "mle"), *map(str, picked)]


def train_and_evaluate(plan: Plan, objective: str, seed: int, folder: Path, progress: Progress | None = None) -> None:
    """Train an objective with a seed, choose β, decode and score the test set."""

    def callbacks(stage: str) -> list[Any]:
        return [Reporter(progress, f"training {stage}, seed {seed}")] if progress else []

    task, problems = plan.tasks[seed], Problems(skip=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*cut there")  # every run would say it; the figures' notes do
        (fitted,) = train(task, [objective], folder, callbacks=callbacks, problems=problems, progress=progress)
    if problems.count:
        warnings.warn(f"{plan.corpus}: {problems}", stacklevel=2)
    validation = task.pairs("validation", Problems(skip=True))[: plan.choose]
    evaluate_run(fitted.run, plan.corpus, validation, plan.test(), plan.evaluation(objective), progress)


def _selector_job(plan: Plan, seed: int, folder: Path) -> Job:
    done = folder / run_name("selector", seed) / "done.json"
    return Job(f"{folder.name}/{done.parent.name}", _select, (plan.tasks[seed], str(folder)), done.is_file)


def _select(task: Task, folder: str, progress: Progress | None = None) -> None:
    train_selector(task, folder, Problems(skip=True))


def _job(plan: Plan, objective: str, seed: int, folder: Path) -> Job:
    path = folder / run_name(parse_objective(objective), seed)
    done = partial(_is_evaluated, plan, objective, seed, path)
    return Job(f"{folder.name}/{path.name}", train_and_evaluate, (plan, objective, seed, folder), done)


def _is_evaluated(plan: Plan, objective: str, seed: int, path: Path) -> bool:
    """Whether the run is finished, of this recipe, and has figures of every decoding."""
    if not (path / "done.json").is_file():
        return False
    run, task, how = Run.open(path), plan.tasks[seed], plan.evaluation(objective)
    if run.config["recipe"] != plain(task.recipe.record()):
        raise ValueError(f"{path} holds a run of other settings (its recipe is another): name another out")
    there = {row.decoding for row in run.rows() if (row.corpus, row.split) == (plan.corpus, "test")}
    return {how.beam.decoding, *how.strategies} <= there


def _differences_job(plan: Plan, folder: Path) -> Job:
    return Job(f"{folder.name}/differences", _write_differences, (plan, folder), partial(_is_compared, plan, folder))


def _is_compared(plan: Plan, folder: Path) -> bool:
    return is_complete(difference_rows(plan, folder), runs_of(plan, folder))


def _write_differences(plan: Plan, folder: Path, progress: Progress | None = None) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = differences(runs_of(plan, folder), plan.corpus, plan.how.beam, plan.test(), plan.how.mover, device)
    write_lines(folder / DIFFERENCES, [row.as_dict() for row in rows])
