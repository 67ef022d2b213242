"""`--overwrite` leaves nothing of the old run behind, whatever the task wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from paper.lengths import Lengths
from scalegrad import training
from scalegrad.decoding import load
from scalegrad.objectives.objective import Objective
from scalegrad.runs import JobsFailed, Run, rows_of
from scalegrad.tasks.captioning import experiment as captioning
from scalegrad.tasks.captioning.splits import Scenes
from scalegrad.tasks.captioning.training import SCENES
from scalegrad.tasks.open_ended import training as open_ended
from scalegrad.tasks.open_ended.config import Evaluation, TrainConfig
from scalegrad.tasks.open_ended.corpora import find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate_run
from scalegrad.tasks.summarization import training as summarization
from scalegrad.tasks.summarization.config import Task
from scalegrad.tasks.summarization.recipes import Recipe
from tests.tasks.open_ended.conftest import saved, text_file, tiny

__all__ = ["saved", "text_file", "tiny"]

NEW = {"config.json", "environment.json", "notes.txt"}
QUICK = training.Settings(max_steps=1, batch=2, tracker=())


class Stop(Exception):
    """Raised in place of the training."""


@pytest.fixture
def no_training(monkeypatch):
    def fit(*_, **__):
        raise Stop

    for module in (open_ended, summarization):
        monkeypatch.setattr(module, "fit", fit)
    monkeypatch.setattr(captioning, "train_captioner", fit)


def files_of(path):
    return {str(item.relative_to(path)) for item in path.rglob("*") if item.is_file()}


def old_run(path, task):
    """A finished run that wrote all that a run writes; a file of the user's too."""
    run = Run.create(path, {"task": task, "objective": "an older one"})
    run.add(rows_of({"ppl": 2.0}), {"of": "the old model"})
    run.save("samples/greedy.jsonl", [{"continuation": "old"}])
    run.log({"step": 1})
    run.finish({})
    run.model_path.mkdir()
    (run.model_path / "config.json").write_text("{}")
    (path / "notes.txt").write_text("mine")
    return run


def test_open_ended(saved, text_file, tmp_path, no_training):
    config = TrainConfig(str(saved), (str(text_file),), length=40, settings=QUICK)
    old_run(tmp_path / "run", "open_ended")
    with pytest.raises(Stop):
        open_ended.train(config, tmp_path / "run", overwrite=True)
    assert files_of(tmp_path / "run") == NEW


def test_summarization(tmp_path, no_training):
    from tests.tasks.summarization.test_training import made_pairs, save_gpt2, save_pairs

    torch.manual_seed(0)
    save_gpt2(tmp_path / "model")
    data = save_pairs(tmp_path / "data", train=made_pairs(4, seed=0), validation=made_pairs(2, seed=1))
    task = Task(
        str(tmp_path / "model"),
        data=data,
        recipe=Recipe(writer=QUICK, target_tokens=12),
        template="{article} show :",
    )
    old_run(tmp_path / "out" / "mle-seed-0", "summarization")
    with pytest.raises(Stop):
        summarization.train(task, ["mle"], tmp_path / "out", overwrite=True)
    assert files_of(tmp_path / "out" / "mle-seed-0") == NEW


def test_captioning(tmp_path, no_training):
    recipe = replace(SCENES, epochs=1, more_than=0)
    old_run(tmp_path / "mle-seed-0", "captioning")
    with pytest.raises(JobsFailed, match="Stop"):
        captioning.train_captioners(Scenes(2, 1, 1), recipe, tmp_path, [Objective("mle")], processes=1, overwrite=True)
    assert files_of(tmp_path / "mle-seed-0") == NEW


def test_figures_by_length_are_those_of_the_new_model(saved, text_file, tmp_path):
    """A real run, scored and measured at two lengths, then trained anew: nothing of the old model is left to trust."""
    config = TrainConfig(str(saved), (str(text_file),), length=40, settings=QUICK)
    run = open_ended.train(config, tmp_path / "run").run
    model, tokenizer = load(str(run.model_path), "cpu")
    corpus = find_corpus(str(text_file))
    evaluate_run(run, model, tokenizer, corpus, Evaluation(chunks=1, prefixes=2, new_tokens=20))
    Lengths(str(text_file), (10, 20), prefixes=2).measure(run, model, tokenizer)
    written = {name for name in files_of(run.path) if "/" not in name}
    always = {"config.json", "environment.json", "metrics.jsonl", "results.jsonl", "evaluations.jsonl", "done.json"}
    assert written <= always
    again = open_ended.train(replace(config, objective=Objective("mle")), tmp_path / "run", overwrite=True).run
    assert json.loads((again.path / "config.json").read_text())["objective"] == "mle"
    assert "evaluations.jsonl" not in files_of(again.path)
    assert {row.corpus for row in again.rows()} == {None}  # those of the training alone
    assert not list((again.path / "samples").iterdir())
