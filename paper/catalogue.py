"""Every reproduction by its name, and doing one: what it gave goes into a folder, and all of them into one page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paper import directed, examples, human_rows, human_study, illustrations, open_ended, open_ended_decoding
from paper.open_ended_scale import trained
from paper.outcome import Experiment, Setup
from paper.pages import Reproduction, read_all, write_folder, write_page
from scalegrad.lab.jobs import Job, merged
from scalegrad.runs import check_writable_folder, environment

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


def train(experiments: Sequence[Experiment], setup: Setup) -> None:
    """Train and measure what these experiments need of models that they share: each run once, all in one queue.

    One experiment after the other, every one would wait for the last of its own runs, most processes idle meanwhile.
    """
    jobs = merged(job for experiment in experiments for job in _jobs(experiment, setup))
    if jobs and not setup.only_done:
        trained(setup, jobs)


def _jobs(experiment: Experiment, setup: Setup) -> Sequence[Job]:
    """None of one that cannot be done: it says why when its turn comes, and the others' are done."""
    try:
        return () if experiment.jobs is None else experiment.jobs(setup)
    except (ValueError, OSError):
        return ()


def reproduce(experiment: Experiment, setup: Setup) -> Reproduction:
    """Do `experiment` and write what it gave to OUT/NAME (results.json, results.md, plots/) and OUT/report.html.

    Runs that are done already in OUT are taken as they are. The page holds whatever OUT holds by then.
    """
    out = check_writable_folder(setup.out, "out")
    about = environment()
    began = time.perf_counter()
    outcome = experiment.run(setup)
    smoke = setup.scale == "smoke" and experiment.scaled
    made = {
        **outcome.made,
        "shown": {  # the models may have been trained elsewhere, and before
            "seconds": round(time.perf_counter() - began, 1),
            **{name: about[name] for name in ("started", "command", "hardware", "versions", "git")},
        },
    }
    found = Reproduction(
        experiment.name,
        experiment.title,
        experiment.shows,
        setup.scale,
        outcome.tables,
        said=[*([SMOKE] if smoke else []), *outcome.said],
        made=made,
    )
    found = write_folder(found, outcome.plots, out / experiment.name)
    write_report(out)
    return found


def write_report(out: Path) -> Path:
    """OUT/report.html of every reproduction that OUT holds."""
    return write_page(read_all(out, [experiment.name for experiment in EXPERIMENTS]), out / "report.html")
