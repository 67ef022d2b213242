"""Every reproduction by its name, and doing one: what it gave goes into a folder, and all of them into one page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from scalegrad.lab.reproduction import illustrations
from scalegrad.lab.reproduction.outcome import Experiment, Setup
from scalegrad.report.reproduction import Reproduction, read_all, write_folder, write_page
from scalegrad.runs import check_writable_folder, environment

ALL = "all"
EXPERIMENTS: tuple[Experiment, ...] = (*illustrations.EXPERIMENTS,)


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


def reproduce(experiment: Experiment, setup: Setup) -> Reproduction:
    """Do `experiment` and write what it gave to OUT/NAME (results.json, results.md, plots/) and OUT/report.html.

    Runs that are done already in OUT are taken as they are. The page holds whatever OUT holds by then.
    """
    out = check_writable_folder(setup.out, "out")
    about = environment()
    began = time.perf_counter()
    outcome = experiment.run(setup)
    made = {
        **outcome.made,
        "seconds": round(time.perf_counter() - began, 1),
        **{name: about[name] for name in ("started", "command", "hardware", "versions", "git")},
    }
    found = Reproduction(
        experiment.name,
        experiment.title,
        experiment.shows,
        setup.scale,
        outcome.tables,
        said=outcome.said,
        made=made,
    )
    found = write_folder(found, outcome.plots, out / experiment.name)
    write_report(out)
    return found


def write_report(out: Path) -> Path:
    """OUT/report.html of every reproduction that OUT holds."""
    return write_page(read_all(out, [experiment.name for experiment in EXPERIMENTS]), out / "report.html")
