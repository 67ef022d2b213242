"""Image paragraphs beside the paper: CIDEr (table 4), repetition (table 9), and sampling from MLE (table 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paper.beside_paper import beside_paper, paper_systems
from paper.outcome import NotGiven, Outcome, Setup, Shown
from paper.printed import SETTINGS
from scalegrad.objectives import Objective
from scalegrad.results.comparison import Comparison, Plot
from scalegrad.results.comparison.plots import repetition_bars
from scalegrad.runs import Run
from scalegrad.tasks.captioning.experiment import PAPER_OBJECTIVES, Splits, file_splits, scene_splits
from scalegrad.tasks.captioning.features import open_features
from scalegrad.tasks.captioning.report import BLOCKED, PLAIN, CaptionRun, compare_captions, compare_stochastic
from scalegrad.tasks.captioning.runs import (
    SCALES,
    caption_experiment,
    read_run,
    run_path,
    run_scenes,
    scene_picture,
    trainings_at_a_time,
)
from scalegrad.tasks.captioning.training import PAPER, SCENES

GENOME = "visual-genome"
PAPER_NOTE = "The paper's rows are Visual Genome with its detector's features: compare order and gaps, not values."
ON_PAGE = 3  # images to look at
SMOKE_SIZES = {"train": 48, "valid": 4, "test": 6}
SMOKE = replace(SCENES, hidden_size=48, attention_size=24, more_than=0, epochs=6, batch=8, evaluations=1)
SMOKE_BETAS = (0.0, 1.0)
_RECORDS = ("config", "environment", "done", "captions")  # of a run that is scored


def captioning(setup: Setup) -> Outcome:
    """Table 4: CIDEr of each objective by greedy search, without and with soft trigram blocking."""
    runs = caption_runs(setup)
    written_by_people, pictures = _to_look_at(setup, runs)
    table = _compared(runs, setup, written_by_people, pictures)
    table = _only(table, ("cider", "bleu", "validation_ppl"))
    drawn = [beside_paper(table, "cider", "captioning", "CIDEr of image paragraphs")]
    return _outcome(setup, runs, Shown(f"Image paragraphs, {_counts(runs)}", table), drawn)


def captioning_degeneration(setup: Setup) -> Outcome:
    """Table 9: how much of a paragraph it has said before, without and with blocking, beside people."""
    runs = caption_runs(setup)
    table = _without_texts(_only(_compared(runs, setup), ("rep_1", "rep_2", "rep_3", "words")))
    drawn = [beside_paper(table, "rep_2", "captioning-rep-2", "Repeated pairs of words"), repetition_bars(table)]
    return _outcome(setup, runs, Shown(f"Repetition in image paragraphs, {_counts(runs)}", table), drawn)


def captioning_decoding(setup: Setup) -> Outcome:
    """Table 18: sampling from the MLE model, against its greedy search with blocking."""
    runs = caption_runs(setup)
    table = compare_stochastic(runs, _corpus(setup))
    assert table is not None  # the MLE model is always sampled from
    table = replace(table, systems=[*table.systems, *paper_systems("captioning decoding")])
    table = _without_texts(_only(table, ("cider", "bleu", "rep_1")))
    drawn = [beside_paper(table, "cider", "captioning-decoding", "Decoding the MLE captioner")]
    return _outcome(setup, runs, Shown(f"The MLE captioner decoded, {_counts(runs)}", table), drawn)


def _compared(runs: Sequence[CaptionRun], setup: Setup, *shown: Mapping[str, str]) -> Comparison:
    """The captioners and the paper's; `shown` are the references and pictures of a page."""
    table = compare_captions(runs, _corpus(setup), *shown)
    paper = paper_systems("captioning", "captioning degeneration")
    return replace(table, systems=[*table.systems, *paper], notes=[*table.notes, PAPER_NOTE])


def caption_runs(setup: Setup) -> list[CaptionRun]:
    """Every objective and seed, trained and scored where that is not done yet in the folder of the runs."""
    folder, told = setup.runs / "captioning", setup.progress
    if setup.only_done:
        return _held_runs(setup, folder)
    if setup.scale == "gpu":
        seeds = setup.seeds or 3
        at_a_time = 9 if torch.cuda.is_available() else trainings_at_a_time(3 * seeds)
        return run_scenes("large", folder, PAPER_OBJECTIVES, seeds, at_a_time, told=told)
    seeds = setup.seeds or 1
    if setup.scale == "smoke":
        splits, recipe, betas = scene_splits(SMOKE_SIZES, told), SMOKE, _smoke_betas
    else:
        splits, recipe, betas = genome_splits(setup), PAPER, paper_betas
    return caption_experiment(splits, recipe, folder, PAPER_OBJECTIVES, range(seeds), betas=betas, told=told)


def _held_runs(setup: Setup, folder: Path) -> list[CaptionRun]:
    """The runs that are scored already."""
    seeds = setup.seeds or (3 if setup.scale == "gpu" else 1)
    places = [run_path(folder, objective, seed) for seed in range(seeds) for objective in PAPER_OBJECTIVES]
    found = [read_run(Run.open(at)) for at in places if all((at / f"{name}.json").is_file() for name in _RECORDS)]
    if not any(run.objective.name == "mle" for run in found):
        raise NotGiven("no MLE captioner was scored yet")
    return found


def genome_splits(setup: Setup) -> Splits:
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
    files = {name: folder / f"{file}.json" for name, file in (("train", "train"), ("valid", "val"), ("test", "test"))}
    missing = [path.name for path in files.values() if not path.is_file()] + ([] if regions else ["regions"])
    if missing:
        raise ValueError(f"{GENOME}: {folder} has no {', '.join(missing)}")
    return file_splits(files, lambda: open_features(regions[0]), str(regions[0]))


def paper_betas(objective: Objective) -> dict[str, tuple[float, ...]]:
    """The paper's β of an objective, without and with blocking.

    >>> paper_betas(Objective("sg", 0.5))
    {'greedy': (0.6,), '3-block': (0.6,)}
    """
    found = SETTINGS["captioning"][objective.name.upper()]["beta"]
    assert isinstance(found, tuple)
    return {PLAIN: (found[0],), BLOCKED: (found[1],)}


def _smoke_betas(objective: Objective) -> dict[str, tuple[float, ...]]:
    return dict.fromkeys((PLAIN, BLOCKED, "greedy,gamma=0.5"), SMOKE_BETAS)


def _to_look_at(setup: Setup, runs: Sequence[CaptionRun]) -> tuple[dict[str, str], dict[str, str]]:
    """A few images, evenly spread: what people wrote of them, and the pictures where they were drawn here."""
    texts = runs[0].texts.get("references", {})
    names = list(texts)[:: max(1, len(texts) // ON_PAGE)][:ON_PAGE]
    return {name: texts[name] for name in names}, {} if setup.scale == "paper" else {n: scene_picture(n) for n in names}


def _corpus(setup: Setup) -> str:
    return "Visual Genome" if setup.scale == "paper" else "drawn scenes"


def _counts(runs: Sequence[CaptionRun]) -> str:
    seeds = len({run.seed for run in runs})
    return f"{runs[0].found['human']['n_texts']:,} test images, {seeds} seed{'s' if seeds > 1 else ''}"


def _only(comparison: Comparison, names: Sequence[str]) -> Comparison:
    """The comparison with these figures alone; a row without any of them goes, but for people's texts."""
    rows = [
        replace(
            system,
            figures={name: system.figures[name] for name in names if name in system.figures},
            deviations={name: system.deviations[name] for name in names if name in system.deviations},
        )
        for system in comparison.systems
    ]
    return replace(comparison, systems=[row for row in rows if row.figures or (row.kind == "human" and row.samples)])


def _without_texts(comparison: Comparison) -> Comparison:
    """Table 4 has them."""
    return replace(comparison, systems=[replace(system, samples=()) for system in comparison.systems])


def _about_scale(setup: Setup, runs: Sequence[CaptionRun]) -> list[str]:
    sizes, _ = SCALES["large"]
    said = {
        "smoke": f"{SMOKE.steps(SMOKE_SIZES['train'])} steps on {SMOKE_SIZES['train']} drawn scenes.",
        "gpu": f"{sizes['train']:,} drawn scenes, whose paragraphs a grammar writes, in place of Visual Genome's "
        "photographs, and a smaller model: compare the order and the gaps, not the values.",
        "paper": "The paper's corpus, hyper-parameters and β; what β means in greedy search the paper leaves open, and "
        "docs/decoding.md says what it means here.",
    }
    told = [said[setup.scale]]
    wanted = SETTINGS["captioning"]["sizes"]["test"]
    if setup.scale == "paper" and (there := runs[0].found["human"]["n_texts"]) != wanted:
        told.append(f"{there:,} test images and not the published {wanted:,}: rows hardly compare.")
    return told


def _outcome(setup: Setup, runs: Sequence[CaptionRun], shown: Shown, drawn: Sequence[Plot | None]) -> Outcome:
    plots = [plot for plot in drawn if plot is not None]
    return Outcome([shown], plots, _about_scale(setup, runs), _made(setup, runs))


def _made(setup: Setup, runs: Sequence[CaptionRun]) -> Mapping[str, Any]:
    """How the figures came about: the settings once, and a line for each run."""
    first = runs[0].made
    started = first["environment"]["starts"][-1]
    return {
        "seeds": sorted({run.seed for run in runs}),
        "data": first["config"]["data"],
        "recipe": first["config"]["recipe"],
        "trained_on": {name: started[name] for name in ("hardware", "versions", "started")},
        "runs": {f"{run.objective} seed {run.seed}": _run_line(run) for run in runs},
    }


def _run_line(run: CaptionRun) -> str:
    """What came of a run, in a line: its step, its perplexity, what it took, and how its greedy texts were decoded."""
    done = run.made["done"]
    took = f"{done['seconds']:.0f} s" + (f", {done['peak_memory_mib']:,.0f} MiB" if done.get("peak_memory_mib") else "")
    decoded = " and ".join(run.found["strategies"][name] for name in (PLAIN, BLOCKED))
    return f"step {done['selected_step']}, validation perplexity {done['validation_ppl']:.3f}, {took}; {decoded}"
