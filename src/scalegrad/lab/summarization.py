"""The summarisation experiment: every objective and several seeds side by side on one GPU, to one JSON file.

    python -m scalegrad.lab.summarization abstracts --out FOLDER
    python -m scalegrad.lab.summarization news --model FOLDER_OR_GGUF --pairs FILE --test FILE --out FOLDER
    python -m scalegrad.lab.summarization_scores FOLDER/abstracts.json --out docs/results

The first trains BertSum on the embedded SciTLDR; the second fine-tunes a causal LM on news that the user has. Each run
is a process of its own, for one of these models alone leaves a GPU idle most of the time. What was chosen on the
validation set, and how, is in the file, with every summary of the test set.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalegrad.data.pairs import read_pairs
from scalegrad.integrations.objective import Objective
from scalegrad.runs import Run, samples_name
from scalegrad.runs.atomic import write_json, write_lines
from scalegrad.runs.environment import environment
from scalegrad.tasks.summarization.evaluation import Evaluation, evaluate_run
from scalegrad.tasks.summarization.models import load_summarizer
from scalegrad.tasks.summarization.recipes import Recipe, abstracts, finetune, small
from scalegrad.tasks.summarization.selection import ALPHAS, GAMMAS, best
from scalegrad.tasks.summarization.training import Task, folder_name, train, train_selector
from scalegrad.tasks.summarization.writing import STOCHASTIC

CORPUS = "test"


@dataclass(frozen=True)
class Job:
    """One process: train an objective with a seed, choose β, decode and score the test set.

    MLE is decoded by the paper's stochastic strategies, too.
    """

    task: Task
    objective: str
    seed: int
    out: str
    how: Evaluation
    choose: int  # validation pairs that β is chosen by
    limit: int | None  # test pairs


def abstracts_task(encoder: str, seed: int, quick: bool = False, limit: int | None = None) -> Task:
    """BertSum on SciTLDR; `quick` is the small recipe, to see that all runs."""
    recipe = small(seed) if quick else abstracts(seed)
    return Task(encoder, "scitldr", _quiet(recipe), limit)


def news_task(model: str, data: str, seed: int, quick: bool = False) -> Task:
    """A causal LM on news: articles of 640 tokens, two epochs, 16 pairs a step."""
    recipe = finetune(seed)
    writer = replace(recipe.writer, epochs=2, batch_size=16, accumulation=1, learning_rate=5e-5, evaluate_every=28)
    if quick:
        writer = replace(writer, epochs=None, max_steps=2, batch_size=2, evaluate_every=1)
    room = 96 if quick else 640
    return Task(model, data, _quiet(replace(recipe, writer=writer, source_tokens=room, max_new_tokens=110)))


def run_job(job: Job) -> dict[str, Any]:
    """Train and evaluate; what came out, with the summaries."""
    warnings.simplefilter("ignore")  # every process would tell of the same cuts
    began = time.perf_counter()
    (fitted,) = train(job.task, [job.objective], job.out)
    run = Run.open(Path(job.out) / folder_name(Objective.parse(job.objective)))
    test = job.task.pairs("test")[: job.limit]
    how = replace(job.how, strategies=STOCHASTIC if job.objective == "mle" else ())
    figures = evaluate_run(run, CORPUS, job.task.pairs("validation")[: job.choose], test, how)
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


def validation_score(result: dict[str, Any]) -> float:
    """What α and γ are chosen by: the mean ROUGE of the validation set at the run's own best β."""
    return float(max(result["evaluation"]["length_normalisation"]["validation_scores"].values()))


def choose_strengths(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """For each objective with a strength: the one with the highest validation score, and all scores."""
    chosen: dict[str, Any] = {}
    for name in ("ul", "sg"):
        scores = {}
        for result in results:
            objective = Objective.parse(result["objective"])
            if objective.name == name and isinstance(objective.strength, float):
                scores[objective.strength] = validation_score(result)
        if scores:
            choice = best(scores)
            chosen[name] = {"strength": choice.value, "validation_scores": {str(k): v for k, v in scores.items()}}
    return chosen


@dataclass
class Ledger:
    """The experiment's file, written anew after every run: what is done survives whatever happens to the rest."""

    path: Path
    about: dict[str, Any]
    began: float = field(default_factory=time.perf_counter)
    results: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)

    def run(self, pool: ProcessPoolExecutor, jobs: Sequence[Job]) -> None:
        """Run the jobs, as many at a time as the pool has processes; a failure is noted and does not end the others."""
        waiting = {pool.submit(run_job, job): job for job in jobs}
        for finished in as_completed(waiting):
            job = waiting[finished]
            try:
                self.results.append(finished.result())
            except Exception as error:
                self.failed.append({"objective": job.objective, "seed": job.seed, "error": repr(error)})
            self.write()

    def write(self) -> None:
        """The file as it stands."""
        self.results.sort(key=lambda result: (result["seed"], result["objective"]))
        seconds = round(time.perf_counter() - self.began, 1)
        found = {"chosen": choose_strengths(self.results), "results": self.results, "failed": self.failed}
        write_json(self.path, {**self.about, "seconds": seconds, **found})


def run_abstracts(arguments: argparse.Namespace, ledger: Ledger) -> None:
    """Grid with the first seed, then the other seeds with what it chose."""
    seeds = range(arguments.seeds)
    how = _how(arguments, abstracts_task(arguments.encoder, 0, arguments.quick).recipe)
    tasks = {seed: abstracts_task(arguments.encoder, seed, arguments.quick, arguments.limit) for seed in seeds}
    folders = {seed: f"{_work(arguments)}/{seed}" for seed in seeds}
    ledger.about["test"] = [pair.id for pair in tasks[0].pairs("test")[: arguments.limit]]

    def job(objective: str, seed: int) -> Job:
        return Job(tasks[seed], objective, seed, folders[seed], how, arguments.choose, arguments.limit)

    grid = ["mle", *(f"ul={alpha}" for alpha in ALPHAS), *(f"sg={gamma}" for gamma in GAMMAS)]
    with _pool(arguments.processes) as pool:
        list(pool.map(train_selector, tasks.values(), folders.values()))
        ledger.run(pool, [job(objective, 0) for objective in grid])
        chosen = choose_strengths(ledger.results)
        objectives = ["mle", *(f"{name}={choice['strength']}" for name, choice in chosen.items())]
        ledger.run(pool, [job(objective, seed) for objective in objectives for seed in seeds if seed])


def run_news(arguments: argparse.Namespace, ledger: Ledger) -> None:
    """Each objective once: the pairs are split into training and validation, the test file is the test set."""
    work, model = _work(arguments), arguments.model
    _split_news(arguments.pairs, arguments.test, f"{work}/data", arguments.validation, arguments.limit)
    if Path(model).suffix == ".gguf":  # unpacked once for all processes
        for part in load_summarizer(model, "cpu", "float32"):
            part.save_pretrained(f"{work}/model")
        model = f"{work}/model"
    task = news_task(model, f"{work}/data", 0, arguments.quick)
    how = _how(arguments, task.recipe)
    ledger.about["test"] = [pair.id for pair in task.pairs("test")]
    objectives = arguments.objectives.split(",")
    with _pool(arguments.processes) as pool:
        ledger.run(pool, [Job(task, one, 0, f"{work}/0", how, arguments.choose, None) for one in objectives])


def main(argv: Sequence[str] | None = None) -> None:
    """The command line; JSON to OUT/abstracts.json or OUT/news.json."""
    arguments = _parser().parse_args(argv)
    settings = {key: value for key, value in vars(arguments).items() if key not in ("out", "work")}
    about = {"experiment": arguments.experiment, "settings": settings, "environment": environment()}
    Path(arguments.out).mkdir(parents=True, exist_ok=True)
    ledger = Ledger(Path(arguments.out) / f"{arguments.experiment}.json", about)
    (run_abstracts if arguments.experiment == "abstracts" else run_news)(arguments, ledger)
    if not ledger.failed:  # after a failure, the same command goes on from what is done
        shutil.rmtree(_work(arguments), ignore_errors=True)  # gigabytes of weights
    told = {"out": str(ledger.path), "runs": len(ledger.results), "failed": ledger.failed}
    print(json.dumps({**told, "chosen": choose_strengths(ledger.results)}))
    if ledger.failed:
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scalegrad.lab.summarization", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="experiment", required=True)
    for name in ("abstracts", "news"):
        verb = verbs.add_parser(name)
        verb.add_argument("--out", required=True, help="folder of the JSON file")
        verb.add_argument(
            "--work", help="folder of the runs, removed if none fails, fast if it can be (default: in OUT)"
        )
        verb.add_argument("--processes", type=int, default=7, help="runs at a time")
        verb.add_argument("--batch", type=int, default=128 if name == "abstracts" else 96, help="articles at a time")
        verb.add_argument("--dtype", default="auto", help="of decoding: auto, float32, bfloat16")
        verb.add_argument("--choose", type=int, default=200 if name == "abstracts" else 50, help="pairs β is chosen by")
        verb.add_argument("--limit", type=int, help="pairs to train and test on (default: all)")
        verb.add_argument("--quick", action="store_true", help="a few steps, to see that all runs")
        if name == "abstracts":
            verb.add_argument("--encoder", default="minilm", help="a BERT: minilm, a name or a folder")
            verb.add_argument("--seeds", type=int, default=3)
        else:
            verb.add_argument("--model", required=True, help="a folder, a name, or a .gguf file")
            verb.add_argument(
                "--pairs", required=True, help="file of pairs to train on; the last ones are for choosing"
            )
            verb.add_argument("--test", required=True, help="file of pairs to test on")
            verb.add_argument("--validation", type=int, default=100, help="pairs kept out of training")
            verb.add_argument("--objectives", default="mle,ul=0.5,sg=0.8,sg=0.5,sg=0.2", help="by commas")
    return parser


def _work(arguments: argparse.Namespace) -> Path:
    return Path(arguments.work or arguments.out) / f"{arguments.experiment}-runs"


def _how(arguments: argparse.Namespace, recipe: Recipe) -> Evaluation:
    least, most = (2, 8) if arguments.quick else (recipe.min_new_tokens, recipe.max_new_tokens)
    return Evaluation(
        min_new_tokens=least, max_new_tokens=most, mover=False, batch=arguments.batch, dtype=arguments.dtype
    )


def _quiet(recipe: Recipe) -> Recipe:
    selector = recipe.selector and replace(recipe.selector, trackers=())
    return replace(recipe, selector=selector, writer=replace(recipe.writer, trackers=()))


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


def _texts(run: Run, name: str) -> list[str]:
    return [record["continuation"] for record in run.load(f"samples/{samples_name(CORPUS, name)}")]


def _split_news(pairs: str, test: str, folder: str, validation: int, limit: int | None) -> None:
    """A folder of splits: the last `validation` pairs of a file to choose by, the others to train on."""
    found, held = read_pairs(pairs), read_pairs(test)
    if validation < 1:
        raise ValueError(f"validation must be at least 1 pair, to choose by, not {validation}")
    if len(found) <= validation:
        raise ValueError(f"pairs: {pairs} has {len(found)} pairs, and {validation} of them are for validation")
    parts = {"train": found[:-validation][:limit], "validation": found[-validation:], "test": held[:limit]}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, kept in parts.items():
        records = [{"id": p.id, "source": list(p.source), "references": list(p.references)} for p in kept]
        write_lines(Path(folder) / f"{name}.jsonl", records)


if __name__ == "__main__":
    main()
