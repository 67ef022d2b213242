"""Image paragraphs beside the paper: CIDEr (table 4), repetition (table 9), and sampling from MLE (table 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.beside_paper import beside_paper, without_texts
from paper.outcome import NotGiven, Outcome, Setup, Shown, with_run_names
from paper.printed import SETTINGS, printed
from paper.rows import beside
from scalegrad.results.comparison import Comparison, Plot, compare
from scalegrad.results.comparison.plots import repetition_bars
from scalegrad.results.frame import frame, run_rows
from scalegrad.runs import Job, Row, Run, run_name
from scalegrad.tasks.captioning.config import PAPER_OBJECTIVES
from scalegrad.tasks.captioning.experiment import (
    BLOCKED,
    PLAIN,
    SCALES,
    STOCHASTIC,
    TWIN,
    Captioning,
    train_and_score,
)
from scalegrad.tasks.captioning.report import GRAMMAR, NOTE, scene_picture, with_pictures
from scalegrad.tasks.captioning.splits import Files, Scenes
from scalegrad.tasks.captioning.training import PAPER, SCENES

GENOME = "visual-genome"
PAPER_NOTE = "The paper's rows are Visual Genome with its detector's features: compare order and gaps, not values."
SMOKE_SCENES = Scenes(48, 4, 6)
SMOKE = replace(SCENES, hidden_size=48, attention_size=24, more_than=0, epochs=6, batch=8, evaluations=1)
_SEARCHES = [(one.decoding, one.penalty) for one in (PLAIN, BLOCKED, TWIN)]


def jobs(setup: Setup) -> list[Job]:
    """Every objective with every seed, trained and scored."""
    captioners = captioners_of(setup)
    for one in captioners:
        one.create()  # a folder with runs of other settings is refused before anything starts
    return [Job(f"captioning/{one.folder.name}", train_and_score, (one,), one.is_done) for one in captioners]


def captioning(setup: Setup) -> Outcome:
    """Table 4: CIDEr of each objective by greedy search, without and with soft trigram blocking."""
    table, runs, rows = _searched(setup, ("cider", "bleu", "validation_ppl"), 4)
    table = table if setup.scale == "paper" else with_pictures(table, scene_picture)
    plots = [beside_paper(table, "cider", "captioning", "CIDEr of image paragraphs")]
    return _outcome(setup, runs, Shown(f"Image paragraphs, {_counts(runs, rows)}", table), plots, rows)


def captioning_degeneration(setup: Setup) -> Outcome:
    """Table 9: how much of a paragraph it has said before, without and with blocking, beside people."""
    table, runs, rows = _searched(setup, ("rep_1", "rep_2", "rep_3", "words"), 9)
    plots = [beside_paper(table, "rep_2", "captioning-rep-2", "Repeated pairs of words"), repetition_bars(table)]
    shown = Shown(f"Repetition in image paragraphs, {_counts(runs, rows)}", without_texts(table))
    return _outcome(setup, runs, shown, plots, rows)


def captioning_decoding(setup: Setup) -> Outcome:
    """Table 18: sampling from the MLE model, against its greedy search with blocking."""
    runs = [run for run in caption_runs(setup) if run.config["objective"] == "mle"]
    decodings = [(one.decoding, one.penalty) for one in (PLAIN, BLOCKED, *STOCHASTIC)]
    rows = [row for row in _rows(runs, ("cider", "bleu", "rep_1")) if (row.decoding, row.penalty) in decodings]
    rows += beside(printed(18), rows[0].corpus, rows[0].split)
    table = without_texts(compare(frame(rows), runs=runs))
    table = replace(table, systems=table.of_kind("decoded", "paper"))  # greedy search is in the other tables
    plots = [beside_paper(table, "cider", "captioning-decoding", "Decoding the MLE captioner")]
    return _outcome(setup, runs, Shown(f"The MLE captioner decoded, {_counts(runs, rows)}", table), plots, rows)


def caption_runs(setup: Setup) -> list[Run]:
    """The captioners that are trained and scored."""
    runs = [Run.open(one.folder) for one in captioners_of(setup) if (one.folder / "results.jsonl").is_file()]
    runs = [run for run in runs if run.finished and any(row.metric == "cider" for row in run.rows())]
    if not any(run.config["objective"] == "mle" for run in runs):
        raise NotGiven("no MLE captioner was scored yet")
    return runs


def captioners_of(setup: Setup) -> list[Captioning]:
    """What is trained at a scale, all objectives of a seed before the next seed."""
    source: Scenes | Files
    source, recipe = SCALES["large"] if setup.scale == "gpu" else (SMOKE_SCENES, SMOKE)
    seeds, betas = setup.seeds or (3 if setup.scale == "gpu" else 1), dict[str, Mapping[str, Sequence[float]]]()
    if setup.scale == "smoke":
        betas = dict.fromkeys(map(str, PAPER_OBJECTIVES), dict.fromkeys(map(str, (PLAIN, BLOCKED, TWIN)), (0.0, 1.0)))
    if setup.scale == "paper":
        source, recipe, betas = genome_files(setup), PAPER, paper_betas()
    folder = setup.runs / "captioning"
    return [
        Captioning(source, recipe, folder / run_name(one, seed), one, seed, betas.get(str(one)))
        for seed in range(seeds)
        for one in PAPER_OBJECTIVES
    ]


def genome_files(setup: Setup) -> Files:
    """Visual Genome's paragraphs and region features, from the user's folder.

    It holds train.json, val.json and test.json (COCO captions), and the features of all images: a folder `regions`, or
    one file regions.h5, .hdf5, .npz or .safetensors.
    """
    if GENOME not in setup.data:
        raise NotGiven(
            "Visual Genome cannot be shipped: give a folder with train.json, val.json, test.json (COCO captions) and "
            f"regions, a detector's features (--data {GENOME}=FOLDER)"
        )
    folder = Path(setup.data[GENOME])
    regions = sorted(folder.glob("regions")) or sorted(folder.glob("regions.*"))
    train, valid, test = (folder / f"{name}.json" for name in ("train", "val", "test"))
    missing = [path.name for path in (train, valid, test) if not path.is_file()] + ([] if regions else ["regions"])
    if missing:
        raise ValueError(f"{GENOME}: {folder} has no {', '.join(missing)}")
    return Files(train, valid, test, features=regions[0])


def paper_betas() -> dict[str, Mapping[str, Sequence[float]]]:
    """The paper's β of each objective, without and with blocking.

    >>> paper_betas()["sg=0.5"]
    {'greedy': (0.6,), 'greedy,soft_block=3': (0.6,)}
    """
    betas: dict[str, Mapping[str, Sequence[float]]] = {}
    for objective in PAPER_OBJECTIVES:
        plain, blocked = SETTINGS["captioning"][objective.name]["beta"]  # type: ignore[misc]
        betas[str(objective)] = {str(PLAIN): (plain,), str(BLOCKED): (blocked,)}
    return betas


def _searched(setup: Setup, metrics: Sequence[str], table: int) -> tuple[Comparison, list[Run], list[Row]]:
    """The captioners by greedy search, beside people and the paper's table; with the rows behind it."""
    runs = caption_runs(setup)
    rows = _rows(runs, metrics)
    rows = [row for row in rows if row.decoding is None or (row.decoding, row.penalty) in _SEARCHES]
    first = next(row for row in rows if row.corpus)
    rows += beside(printed(table), first.corpus, first.split)
    shown = compare(frame(rows), first.corpus, first.split, training=True, runs=runs)
    grammar = [] if setup.scale == "paper" else [GRAMMAR]
    return replace(shown, notes=[NOTE, *grammar, *shown.notes, PAPER_NOTE]), runs, rows


def _rows(runs: Sequence[Run], metrics: Sequence[str]) -> list[Row]:
    """Rows of the test set, and of the training, which have no corpus."""
    rows = [row for run in runs for row in run_rows(run)]
    return [row for row in rows if row.metric in metrics and row.split in (None, "test")]


def _counts(runs: Sequence[Run], rows: Sequence[Row]) -> str:
    seeds, texts = len({run.about()["seed"] for run in runs}), next(row.n for row in rows if row.corpus and row.n)
    return f"{texts:,} test images, {seeds} seed{'s' if seeds > 1 else ''}"


def _about_scale(setup: Setup, rows: Sequence[Row]) -> list[str]:
    large, wanted = SCALES["large"][0], SETTINGS["captioning"]["sizes"]["test"]
    sentences = {
        "smoke": f"{SMOKE.steps(SMOKE_SCENES.train)} steps on {SMOKE_SCENES.train} drawn scenes.",
        "gpu": f"{large.train:,} drawn scenes, whose paragraphs a grammar writes, in place of Visual Genome's "
        "photographs, and a smaller model: compare the order and the gaps, not the values.",
        "paper": "The paper's corpus, hyper-parameters and β; what β means in greedy search the paper leaves open, and "
        "docs/decoding.md says what it means here.",
    }
    there = next(row.n for row in rows if row.corpus and row.n)
    if setup.scale == "paper" and there != wanted:
        return [sentences["paper"], f"{there:,} test images and not the published {wanted:,}: rows hardly compare."]
    return [sentences[setup.scale]]


def _outcome(
    setup: Setup, runs: Sequence[Run], shown: Shown, plots: Sequence[Plot | None], rows: Sequence[Row]
) -> Outcome:
    drawn = [plot for plot in plots if plot]
    return Outcome([shown], drawn, _about_scale(setup, rows), _made(runs), with_run_names(rows, runs))


def _made(runs: Sequence[Run]) -> Mapping[str, Any]:
    """How the figures came about: the settings once, and a line for each run."""
    config, start = runs[0].config, runs[0].load("environment")["starts"][-1]
    return {
        "seeds": sorted({run.about()["seed"] for run in runs}),
        "data": config["data"],
        "recipe": config["recipe"],
        "trained_on": {name: start[name] for name in ("hardware", "versions", "started")},
        "runs": {run.path.name: _run_line(run) for run in runs},
    }


def _run_line(run: Run) -> str:
    """What came of a run, in a line: its step, its perplexity, what it took, and how its greedy texts were decoded."""
    done = run.load("done")
    took = f"{done['seconds']:.0f} s" + (f", {done['peak_memory_mib']:,.0f} MiB" if done.get("peak_memory_mib") else "")
    used = [
        entry["strategy"] for entry in run.evaluations_now()
        if (entry["settings"]["decoding"], entry["settings"]["penalty"]) in _SEARCHES[:2]
    ]  # fmt: skip
    step, ppl = done["selected_step"], done["validation_ppl"]
    return f"step {step}, validation perplexity {ppl:.3f}, {took}; {' and '.join(used)}"
