"""Captioning beside the paper: stored runs without weights, the paper's settings, the first step of its scale."""

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

from paper import NotGiven, Setup
from paper.captions import (
    caption_runs,
    captioning,
    captioning_decoding,
    captioning_degeneration,
    genome_splits,
    paper_betas,
)
from paper.printed import SETTINGS
from scalegrad.objectives import Objective
from scalegrad.runs import Run
from scalegrad.tasks.captioning.experiment import FILES, PAPER_OBJECTIVES
from scalegrad.tasks.captioning.paragraphs import VISUAL_GENOME_SIZES
from scalegrad.tasks.captioning.runs import SCALES, run_path, scene_record
from scalegrad.tasks.captioning.training import PAPER


def figures(cider, rep):
    return {"cider": cider, "bleu": 1.0, "rep_1": rep, "rep_2": rep / 2, "rep_3": rep / 4, "words": 60.0, "n_texts": 9}


def store(folder, objective, seed, greedy, blocked, others=()):
    """A finished run at the scale of a GPU: its records, and no weights."""
    sizes, recipe = SCALES["large"]
    config = scene_record(sizes, recipe, objective, seed)
    run = Run.create(run_path(folder, objective, seed), config, files=FILES)
    rows = {"greedy": figures(greedy, 0.8), "3-block": figures(blocked, 0.5), **dict(others)}
    betas = {name: {"0": 1.0} for name in rows}
    human = {"rep_1": 0.5, "rep_2": 0.2, "rep_3": 0.1, "words": 68.0, "n_texts": 1000}
    strategies = {name: f"{name},gnmt=0.6" for name in rows}
    run.save(
        "captions", {"rows": rows, "betas": betas, "strategies": strategies, "human": human, "validation_ppl": 3.0}
    )
    run.save("samples/greedy.jsonl", [{"image_id": "test-0", "text": "a dog."}])
    run.finish({"selected_step": 564, "validation_ppl": 3.0, "seconds": 100.0, "peak_memory_mib": 1150.0})


@pytest.fixture
def setup(tmp_path):
    """MLE 10, 12, 14 by greedy search, SG 20, 21, 22; with blocking UL ahead of SG by less than that varies."""
    folder = tmp_path / "runs" / "captioning"
    mle, ul, sg = PAPER_OBJECTIVES
    sampled = {"top_p=0.3": figures(9.0, 0.4), "top_p=0.9": figures(8.0, 0.3), "greedy,gamma=0.5": figures(25.0, 0.6)}
    for seed in range(3):
        store(folder, mle, seed, 10.0 + 2 * seed, 40.0, sampled)
        store(folder, ul, seed, 15.0, 50.5)
        store(folder, sg, seed, 20.0 + seed, 49.0 + seed)
    return Setup("gpu", tmp_path)


def test_stored_runs_become_tables_without_weights(setup):
    found = captioning(setup)
    (title, table) = found.tables[0][:2]
    assert title == "Image paragraphs, 1,000 test images, 3 seeds"
    rows = {system.label: system for system in table.systems}
    assert (rows["MLE"].figures["cider"], rows["MLE"].deviations["cider"], rows["MLE"].runs) == (12.0, 2.0, 3)
    assert rows["SG γ=0.5 3-block, in the paper"].figures == {"cider": 24.62}
    assert "Human" not in rows  # nothing of the people's is in this table
    assert found.made["runs"]["mle seed 1"] == (
        "step 564, validation perplexity 3.000, 100 s, 1,150 MiB; greedy,gnmt=0.6 and 3-block,gnmt=0.6"
    )
    assert found.made["seeds"] == [0, 1, 2]
    assert [plot.name for plot in found.plots] == ["captioning"]
    assert not list(setup.runs.rglob("*.safetensors"))  # nothing was trained


def test_repetition_and_sampling(setup):
    table = captioning_degeneration(setup).tables[0].comparison
    rows = {system.label: system.figures for system in table.systems}
    assert rows["SG γ=0.5 3-block"] == {"rep_1": 0.5, "rep_2": 0.25, "rep_3": 0.125, "words": 60.0}
    assert rows["Human"]["rep_2"] == 0.2
    assert rows["Human, in the paper"] == {"rep_1": 0.421, "rep_2": 0.123, "rep_3": 0.042}
    assert "UL α=0.5, in the paper" not in rows  # table 9 has no such row
    table = captioning_decoding(setup).tables[0].comparison
    rows = {system.label: system.figures["cider"] for system in table.systems}
    assert (rows["MLE 3-block"], rows["MLE top_p=0.3"], rows["MLE top_p=0.3, in the paper"]) == (40.0, 9.0, 19.54)


def test_only_done_trains_nothing(setup, tmp_path):
    """What a stopped machine left: fewer seeds of one objective, none of another."""
    for name in ("sg-0.5-seed2", "ul-0.5-seed0", "ul-0.5-seed1", "ul-0.5-seed2"):
        shutil.rmtree(setup.runs / "captioning" / name)
    rows = {s.label: s for s in captioning(replace(setup, only_done=True)).tables[0].comparison.systems}
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
    names = ("MLE", "UL", "SG")
    for objective, name in zip(PAPER_OBJECTIVES, names, strict=True):
        assert asdict(PAPER)["learning_rate"] == settings[name]["learning_rate"]
        assert asdict(PAPER)["batch"] == settings[name]["batch"]
        assert tuple(beta for (beta,) in paper_betas(objective).values()) == settings[name]["beta"]
    assert PAPER_OBJECTIVES[1:] == (
        Objective("ul", settings["UL"]["alpha"]),
        Objective("sg", settings["SG"]["gamma"]),
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

    setup = Setup("paper", tmp_path, data={"visual-genome": str(folder)}, progress=progress)
    with pytest.raises(FirstStep):
        caption_runs(setup)
    assert seen == [("training MLE, seed 0", 1, 90)]
    config = Run.open(tmp_path / "runs" / "captioning" / "mle-seed0").config
    assert config["recipe"] == asdict(PAPER)
    (folder / "val.json").unlink()
    with pytest.raises(ValueError, match=r"visual-genome: .* has no val.json"):
        genome_splits(setup)
    with pytest.raises(NotGiven, match="--data visual-genome=FOLDER"):
        captioning(Setup("paper", tmp_path))
