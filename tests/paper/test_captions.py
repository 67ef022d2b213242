"""Captioning beside the paper: stored runs without weights, the paper's settings, the first step of its scale."""

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

from paper.captions import (
    captioners_of,
    captioning,
    captioning_decoding,
    captioning_degeneration,
    genome_files,
    jobs,
    paper_betas,
)
from paper.catalogue import find, prepare
from paper.outcome import NotGiven, Setup
from paper.printed import SETTINGS
from scalegrad.objectives import Objective
from scalegrad.runs import Run, rows_of
from scalegrad.tasks.captioning.config import PAPER_OBJECTIVES
from scalegrad.tasks.captioning.experiment import train_and_score
from scalegrad.tasks.captioning.paragraphs import VISUAL_GENOME_SIZES
from scalegrad.tasks.captioning.training import PAPER


def figures(cider, rep):
    figures = {"cider": cider, "bleu": 1.0, "rep_1": rep, "rep_2": rep / 2, "rep_3": rep / 4, "words": 60.0}
    return {name: {"value": value, "n": 1000} for name, value in figures.items()}


def store(captioner, greedy, blocked):
    """A finished, scored run: its records, and no weights."""
    run = captioner.create()
    run.finish({"selected_step": 564, "validation_ppl": 3.0, "seconds": 100.0, "peak_memory_mib": 1150.0})
    about = {**run.about(), "task": "captioning", "seed": captioner.seed, "corpus": "scenes", "split": "test"}
    scores = {"greedy": greedy, "soft_block=3": blocked, "gamma=0.5": 25.0, "top_p=0.3": 9.0, "top_p=0.9": 8.0}
    for strategy in captioner.strategies():
        name = strategy.penalty or strategy.decoding
        fields = {"decoding": strategy.decoding, "penalty": strategy.penalty}
        rows = rows_of(figures(scores.get(name, 7.0), 0.8 if name == "greedy" else 0.5), **about, **fields)
        run.add(rows, captioner.settings(strategy), strategy=f"{strategy},gnmt=0.6", notes=[])
    people = {**about, "objective": "human", "strength": None, "seed": None, "step": None}
    run.add(rows_of({"rep_1": 0.5, "rep_2": {"value": 0.2, "n": 1000}, "rep_3": 0.1, "words": 68.0}, **people))
    run.add(rows_of({"validation_ppl": 3.0}, **{**about, "corpus": None, "split": None}))


@pytest.fixture
def setup(tmp_path):
    """MLE 10, 12, 14 by greedy search, SG 20, 21, 22; with blocking UL ahead of SG by less than that varies."""
    setup = Setup("gpu", tmp_path)
    for one in captioners_of(setup):
        greedy = {"mle": 10.0 + 2 * one.seed, "ul": 15.0, "sg": 20.0 + one.seed}[one.objective.name]
        store(one, greedy, {"mle": 40.0, "ul": 50.5, "sg": 49.0 + one.seed}[one.objective.name])
    return setup


def test_stored_runs_become_tables_without_weights(setup):
    assert [job.name for job in jobs(setup) if not job.is_done()] == []
    outcome = captioning(setup)
    (title, table) = outcome.tables[0][:2]
    assert title == "Image paragraphs, 1,000 test images, 3 seeds"
    rows = {system.label: system for system in table.systems}
    assert (rows["MLE"].figures["cider"], rows["MLE"].deviations["cider"], rows["MLE"].runs) == (12.0, 2.0, 3)
    assert rows["MLE"].figures["validation_ppl"] == 3.0
    assert rows["SG γ=0.5, soft_block=3, in the paper"].figures == {"cider": 24.62}
    assert outcome.made["runs"]["mle-seed-1"] == (
        "step 564, validation perplexity 3.000, 100 s, 1,150 MiB; greedy,gnmt=0.6 and greedy,soft_block=3,gnmt=0.6"
    )
    assert outcome.made["seeds"] == [0, 1, 2]
    assert [plot.name for plot in outcome.plots] == ["captioning"]
    assert {row.run for row in outcome.rows if row.objective == "sg" and row.seed == 2} == {"sg-0.5-seed-2"}
    assert not list(setup.runs.rglob("*.safetensors"))  # nothing was trained


def test_repetition_and_sampling(setup):
    table = captioning_degeneration(setup).tables[0].comparison
    rows = {system.label: system.figures for system in table.systems}
    assert rows["SG γ=0.5, soft_block=3"] == {"rep_1": 0.5, "rep_2": 0.25, "rep_3": 0.125, "words": 60.0}
    assert rows["Human"]["rep_2"] == 0.2
    assert rows["Human, in the paper"] == {"rep_1": 0.421, "rep_2": 0.123, "rep_3": 0.042}
    assert "UL α=0.5, in the paper" not in rows  # table 9 has no such row
    table = captioning_decoding(setup).tables[0].comparison
    rows = {system.label: system.figures["cider"] for system in table.systems}
    assert "MLE" not in rows
    assert (rows["MLE, soft_block=3"], rows["MLE, top_p=0.3"], rows["MLE, top_p=0.3, in the paper"]) == (40, 9, 19.54)


def test_only_done_trains_nothing(setup, tmp_path):
    """What a stopped machine left: fewer seeds of one objective, none of another."""
    for name in ("sg-0.5-seed-2", "ul-0.5-seed-0", "ul-0.5-seed-1", "ul-0.5-seed-2"):
        shutil.rmtree(setup.runs / "captioning" / name)
    here = replace(setup, only_done=True)
    assert prepare(find(["captioning"]), here) == ({}, {})
    rows = {s.label: s for s in captioning(here).tables[0].comparison.systems}
    assert (rows["MLE"].runs, rows["SG γ=0.5"].runs) == (3, 2)
    assert rows["SG γ=0.5"].figures["cider"] == 20.5
    assert "UL α=0.5" not in rows
    with pytest.raises(NotGiven, match="no MLE captioner was scored yet"):
        captioning(Setup("gpu", tmp_path / "empty", only_done=True))
    assert not (tmp_path / "empty").exists()


def test_the_papers_scale_has_the_papers_settings():
    """Table 16 and the sizes of the corpus, field by field."""
    settings = SETTINGS["captioning"]
    published = {"train": "train", "validation": "val", "test": "test"}
    assert {name: VISUAL_GENOME_SIZES[split] for name, split in published.items()} == {
        name: settings["sizes"][name] for name in published
    }
    for objective in PAPER_OBJECTIVES:
        own = settings[objective.name]
        assert asdict(PAPER)["learning_rate"] == own["learning_rate"]
        assert asdict(PAPER)["batch"] == own["batch"]
        assert tuple(beta for (beta,) in paper_betas()[str(objective)].values()) == own["beta"]
    assert PAPER_OBJECTIVES[1:] == (
        Objective("ul", settings["ul"]["alpha"]),
        Objective("sg", settings["sg"]["gamma"]),
    )


class FirstStep(Exception):
    pass


def test_the_papers_scale_down_to_its_first_step(tmp_path):
    """Twenty-five images are three steps an epoch, and there are thirty epochs."""
    folder, names = tmp_path / "vg", {"train": range(25), "val": range(30, 32), "test": range(40, 42)}
    folder.mkdir()
    for split, ids in names.items():
        content = {
            "images": [{"id": i} for i in ids],
            "annotations": [{"image_id": i, "caption": "A red dog runs. " * 3} for i in ids],
        }
        (folder / f"{split}.json").write_text(json.dumps(content))
    everything = [i for ids in names.values() for i in ids]
    np.savez(folder / "regions.npz", **{str(i): np.ones((3, 8), np.float32) for i in everything})
    seen = []

    def progress(what, done, total):
        seen.append((what.split(" · ")[0], done, total))
        raise FirstStep

    setup = Setup("paper", tmp_path, data={"visual-genome": str(folder)})
    first = jobs(setup)[0]
    assert (first.name, first.function) == ("captioning/mle-seed-0", train_and_score)
    with pytest.raises(FirstStep):
        first.function(*first.arguments, progress=progress)
    assert seen == [("training MLE, seed 0", 1, 90)]
    assert Run.open(tmp_path / "runs" / "captioning" / "mle-seed-0").config["recipe"] == asdict(PAPER)
    (folder / "val.json").unlink()
    with pytest.raises(ValueError, match=r"visual-genome: .* has no val.json"):
        genome_files(setup)
    with pytest.raises(NotGiven, match="--data visual-genome=FOLDER"):
        jobs(Setup("paper", tmp_path))
