"""Every experiment by its name: the jobs that several of them need, run once, and what each shows."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Console

from paper import directed, examples, human_rows, human_study, illustrations, open_ended, open_ended_decoding
from paper.open_ended_scale import devices_of, jobs_of
from paper.outcome import Experiment, NotGiven, Setup
from paper.pages import Part, as_dict, print_part, write_page, write_part
from scalegrad.extras import MissingExtra
from scalegrad.runs import Job, JobsFailed, check_writable_folder, run_jobs
from scalegrad.runs.atomic import plain
from scalegrad.runs.progress import Progress
from scalegrad.runs.terminal import bars

ALL = "all"
SMOKE = "Scale smoke: a few steps and texts, to see that everything runs. The figures say nothing of the objectives."
DATA = {
    "ptb": "the Penn Treebank's test text",
    "imdb": "IMDB reviews",
    "wikitext-103": "WikiText-103's training text, in place of the hub's",
    "wikipedia": "an enwik8 dump, to pre-train on",
    "books": "Project Gutenberg's books, to pre-train on",
    "base-small": "both of these, prepared",
    "news": "a folder of CNN/DM pairs, for scale gpu",
    "cnn_dailymail": "CNN/DM, in place of the hub's",
    "nyt50": "NYT50, which is licensed",
    "visual-genome": "its paragraphs and region features",
}
"""What cannot be shipped, by the names that `Setup.data` knows."""


class Takes(NamedTuple):
    """Roughly how long an experiment takes at each scale."""

    smoke: str
    gpu: str
    paper: str


TAKES = {
    "wikitext": Takes("30 s", "20 min", "a day"),
    "ptb": Takes("5 s", "1 min", "10 min"),
    "imdb": Takes("5 s", "1 min", "10 min"),
    "decoding": Takes("10 s", "2 min", "2 h"),
    "lengths": Takes("10 s", "1 min", "1 h"),
    "sensitivity": Takes("1 s", "1 min", "10 min"),
    "summarization": Takes("15 s", "10 min", "days"),
    "summarization-decoding": Takes("1 s", "1 s", "1 h"),
    "captioning": Takes("20 s", "10 min", "hours"),
    "captioning-degeneration": Takes("1 s", "1 s", "1 s"),
    "captioning-decoding": Takes("1 s", "1 s", "1 s"),
    "human-rows": Takes("10 s", "10 s", "10 s"),
    "gradients": Takes("1 s", "1 s", "1 s"),
    "novel-set": Takes("1 s", "1 s", "1 s"),
    "human-study": Takes("1 s", "1 s", "1 s"),
    "examples": Takes("10 s", "1 min", "5 min"),
}
TIMES = (
    "Times are rough: smoke as measured on two cores, gpu on one H200, paper reckoned for one. They count what an "
    "experiment adds where those above it are done: models are trained once, and shared."
)
_MODULES = (open_ended, open_ended_decoding, directed, human_rows, illustrations, human_study, examples)
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    sorted(
        (experiment for module in _MODULES for experiment in module.EXPERIMENTS),
        key=lambda experiment: list(TAKES).index(experiment.name),
    )
)


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once, in the order of the catalogue; "all" is every one.

    >>> [experiment.name for experiment in find(["novel-set", "gradients"])]
    ['gradients', 'novel-set']
    """
    known = [experiment.name for experiment in EXPERIMENTS]
    for name in names:
        if name not in (ALL, *known):
            raise ValueError(f"there is no experiment {name!r}; there are {', '.join(known)}, or {ALL}")
    return [experiment for experiment in EXPERIMENTS if ALL in names or experiment.name in names]


def run_all(names: Sequence[str], setup: Setup, as_json: bool = False) -> int:
    """Run what the experiments of these names need, then show each of them; the exit code of the command.

    What only the user can bring is said at once, and again at the end; the code is 2 if it was asked for by name, or is
    wrong. Jobs that fail stop no other: they are reported at the end, and the code is 1.
    """
    chosen, console = find(names), Console()
    with bars() as progress:
        refused, failed = prepare(chosen, setup, progress)
    parts = []
    for experiment in chosen:
        try:
            if experiment.name in refused:
                raise refused[experiment.name]
            parts.append(show(experiment, setup))
        except (ValueError, OSError, MissingExtra) as mistake:
            if len(chosen) == 1 and not failed:
                raise
            if isinstance(mistake, NotGiven):
                refused.setdefault(experiment.name, mistake)
            elif experiment.name not in refused:
                failed[experiment.name] = mistake
        else:
            if not as_json:
                print_part(parts[-1], console)
    if as_json:
        print(json.dumps(plain([as_dict(part) for part in parts]), ensure_ascii=False, indent=2))
    elif parts:
        print(f"All of it on one page: {setup.out / 'report.html'}")
    left_out = [f"left out: {name}: {error}" for name, error in refused.items()]
    for sentence in [*left_out, *(f"paper: {name}: {error}" for name, error in failed.items())]:
        print(sentence, file=sys.stderr)
    asked = [name for name, error in refused.items() if name in names or not isinstance(error, NotGiven)]
    return 1 if failed else 2 if asked else 0


def prepare(
    experiments: Sequence[Experiment], setup: Setup, progress: Progress | None = None
) -> tuple[dict[str, Exception], dict[str, BaseException]]:
    """Run every job that these experiments need, each once; what cannot be done, by experiment, and jobs that failed.

    Jobs that wait for others (the chosen strengths with further seeds) are asked for when those are done.
    """
    check_writable_folder(setup.out, "out")
    refused: dict[str, Exception] = {}
    failed: dict[str, BaseException] = {}
    started: set[str] = set()
    while not setup.only_done:
        jobs, new = _jobs(experiments, setup)
        for name, error in new.items():
            if name not in refused and len(experiments) > 1:
                print(f"paper: {name} is left out: {error}", file=sys.stderr)  # at once: the jobs of others take long
            refused.setdefault(name, error)
        jobs = [job for job in jobs if job.name not in started]
        if not jobs:
            break
        started |= {job.name for job in jobs}
        try:
            run_jobs(jobs, setup.runs, devices=devices_of(setup), progress=progress)
        except JobsFailed as errors:
            failed |= errors.errors
    return refused, failed


def _jobs(experiments: Sequence[Experiment], setup: Setup) -> tuple[list[Job], dict[str, Exception]]:
    """The jobs of the experiments, and why some cannot be done."""
    trainings, jobs, refused = [], dict[str, Job](), dict[str, Exception]()
    for experiment in experiments:
        try:
            own = list(experiment.trainings(setup) if experiment.trainings else ())
            jobs_of(setup, own)  # says what is missing
            others = list(experiment.jobs(setup) if experiment.jobs else ())
        except (ValueError, OSError, MissingExtra) as error:
            refused[experiment.name] = error
        else:
            trainings += own
            jobs |= {job.name: job for job in others}
    return [*jobs_of(setup, trainings), *jobs.values()], refused


def show(experiment: Experiment, setup: Setup) -> Part:
    """Write what the runs give for `experiment` to OUT/NAME, and OUT/report.html of everything that OUT holds."""
    out = check_writable_folder(setup.out, "out")
    outcome = experiment.show(setup)
    smoke = [SMOKE] if setup.scale == "smoke" and experiment.scaled else []
    part = Part(experiment, setup.scale, replace(outcome, notes=[*smoke, *outcome.notes]))
    write_part(part, out / experiment.name)
    write_page(out, [experiment.name for experiment in EXPERIMENTS])
    return part
