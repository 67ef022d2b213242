"""Several captioners: each is a job, done once; stopped, it goes on; a failure ends no other."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from scalegrad.objectives import parse
from scalegrad.runs import JobsFailed
from scalegrad.tasks.captioning import experiment
from scalegrad.tasks.captioning.experiment import PAPER_OBJECTIVES, train_captioners
from scalegrad.tasks.captioning.splits import Scenes
from scalegrad.tasks.captioning.training import SCENES

TINY = replace(SCENES, hidden_size=8, attention_size=4, epochs=1, batch=12, more_than=0, evaluations=1)
SOURCE = Scenes(12, 2, 2)
OBJECTIVES = (parse("ul=0.5"), parse("sg=0.5"))
BETAS = {str(one): {"greedy": (0.0,), "greedy,soft_block=3": (0.0, 0.5)} for one in OBJECTIVES}


def figures(runs):
    """All rows but what depends on the clock and the machine."""
    rows = [row for run in runs for row in run.rows()]
    return [row for row in rows if row.corpus is not None]


@pytest.fixture
def short(monkeypatch):
    """An untrained captioner would not find an end."""
    monkeypatch.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 8)


def test_every_objective_and_seed_is_a_job_that_another_process_can_do(tmp_path, monkeypatch):
    """What is sent to a process says all it needs: it gives the rows that the captioner itself would."""
    jobs = []
    monkeypatch.setattr(experiment, "run_jobs", lambda own, folder, **options: jobs.append((list(own), options)))
    runs = train_captioners(SOURCE, TINY, tmp_path, OBJECTIVES, (0, 1), betas=BETAS, processes=3)
    ((own, options),) = jobs
    assert options["processes"] == 3
    names = ["ul-0.5-seed-0", "sg-0.5-seed-0", "ul-0.5-seed-1", "sg-0.5-seed-1"]
    assert [job.name for job in own] == [run.path.name for run in runs] == names
    for job in own:
        function, (captioning,) = pickle.loads(pickle.dumps((job.function, job.arguments)))
        assert (function, captioning) == (job.function, *job.arguments)
        assert not captioning.is_done()


def test_stopped_between_two_decodings_it_goes_on(tmp_path, monkeypatch, short):
    whole = train_captioners(SOURCE, TINY, tmp_path / "whole", OBJECTIVES[:1], betas=BETAS, processes=1)
    usual = experiment.describe

    def describe(model, tokenizer, regions, strategy, **options):
        if strategy.soft_block:
            raise KeyboardInterrupt
        return usual(model, tokenizer, regions, strategy, **options)

    with monkeypatch.context() as patched:
        patched.setattr(experiment, "describe", describe)
        with pytest.raises(KeyboardInterrupt):
            train_captioners(SOURCE, TINY, tmp_path / "stopped", OBJECTIVES[:1], betas=BETAS, processes=1)
    decoded = []
    monkeypatch.setattr(
        experiment, "describe", lambda *given, **options: decoded.append(given[3]) or usual(*given, **options)
    )
    (resumed,) = train_captioners(SOURCE, TINY, tmp_path / "stopped", OBJECTIVES[:1], betas=BETAS, processes=1)
    assert [strategy.soft_block for strategy in decoded] == [3]
    assert figures([resumed]) == figures(whole)
    monkeypatch.setattr(experiment, "train_and_score", lambda *_, **__: pytest.fail("it was done"))
    train_captioners(SOURCE, TINY, tmp_path / "stopped", OBJECTIVES[:1], betas=BETAS, processes=1)
    with pytest.raises(ValueError, match=r"its recipe\.epochs is 1, not 2"):
        train_captioners(SOURCE, replace(TINY, epochs=2), tmp_path / "stopped", OBJECTIVES[:1], processes=1)


def test_a_failing_training_stops_no_other(tmp_path, monkeypatch):
    trained = []

    def train(captioning, progress=None):
        if captioning.objective.name == "mle":
            raise OSError("the disk is full")
        trained.append(captioning.folder.name)

    monkeypatch.setattr(experiment, "train_and_score", train)
    with pytest.raises(JobsFailed, match=r"1 of 3 jobs failed.*mle-seed-0: the disk is full"):
        train_captioners(SOURCE, TINY, tmp_path, PAPER_OBJECTIVES, processes=1)
    assert trained == ["ul-0.5-seed-0", "sg-0.5-seed-0"]


@pytest.mark.parametrize("epochs", [0, -1])
def test_no_epochs_are_refused(epochs):
    with pytest.raises(ValueError, match=f"^epochs must be at least 1, not {epochs}$"):
        replace(TINY, epochs=epochs)
