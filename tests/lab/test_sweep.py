"""Sweeps of a tiny model, trained for a few real steps: resumed, in parallel, scored and written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalegrad.lab import jobs
from scalegrad.lab.sweep import Sweep, Swept, run_sweep, write_results
from scalegrad.runs import JobsFailed, Run, read_rows, write_json
from scalegrad.tasks.open_ended import evaluation
from scalegrad.tasks.open_ended.config import TrainConfig, Training
from scalegrad.tasks.open_ended.training import find_finished
from scalegrad.training import Settings
from scalegrad.training.trainer import RunTrainer

LIMITS: dict[str, Any] = {"chunks": 2, "prefixes": 3, "new_tokens": 50}


@pytest.fixture
def tried(saved_tiny: Path, tiny_text: Path) -> Sweep:
    """MLE, one γ, one α, one seed."""
    settings = Settings(max_steps=2, batch=2, learning_rate=1e-2, evaluate_every=1, tracker=())
    config = Training(str(saved_tiny), (str(tiny_text),), length=40, settings=settings)
    return Sweep(config, gamma=(0.5,), alpha=(1.0,), seeds=1, corpus=str(tiny_text), **LIMITS)


def test_grid_and_decodings(tried):
    grid = Sweep(tried.config, gamma=(0.2, 0.5), alpha=(1.0,), seeds=2)
    assert [job.name for job in grid.jobs()] == [
        f"{name}-seed-{seed}" for seed in (0, 1) for name in ("mle", "ul-1.0", "sg-0.2", "sg-0.5")
    ]
    assert grid.jobs()[0].measured[0].strategies == ("greedy", "greedy,gamma=0.2", "greedy,gamma=0.5")
    assert grid.jobs()[1].measured[0].strategies == ("greedy",)
    for bad, said in (({"seeds": 0}, "seeds must be"), ({"gamma": ()}, "gamma is empty"), ({"gamma": (2.0,)}, "in")):
        with pytest.raises(ValueError, match=said):
            Sweep(tried.config, **bad)
    with pytest.raises(ValueError, match="chunks must be at least 1, not 0: the budget is of perplexity"):
        replace(tried, chunks=0)
    for bad, said in (({"prefixes": -1}, "prefixes is -1"), ({"new_tokens": 0}, "new_tokens is 0")):
        with pytest.raises(ValueError, match=said):  # before anything is trained
            replace(tried, **bad)
    with pytest.raises(ValueError, match="named twice"):
        Sweep(tried.config, gamma=(0.2, 0.2))


def test_bad_lines_are_left_out_on_demand(tried, tiny_text, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in tiny_text.read_text().splitlines()) + "broken\n")
    few = replace(tried, config=replace(tried.config, data=(str(path),)), corpus=str(path), alpha=(), prefixes=0)
    with pytest.raises(ValueError, match="not JSON"):
        run_sweep(few, tmp_path / "none")
    with pytest.warns(UserWarning, match="data: 1 left out: 1 × not JSON"):
        swept = run_sweep(replace(few, skip_bad=True), tmp_path / "sweep")
    assert len(swept.comparison.of_kind("trained")) == 2
    with pytest.raises(ValueError, match="standard input only once"):
        replace(tried, corpus="-")


def test_a_sweep_goes_on_where_it_stopped(tried, tmp_path, monkeypatch):
    real, trained = jobs.train, []

    def stops_at_scalegrad(config: TrainConfig, out: Path, **options: Any) -> Any:
        trained.append(str(config.objective))
        if config.objective.name == "sg" and trained.count("sg=0.5") == 1:
            raise KeyboardInterrupt
        return real(config, out, **options)

    scored = []
    score = jobs.evaluate_run
    monkeypatch.setattr(jobs, "train", stops_at_scalegrad)
    monkeypatch.setattr(jobs, "evaluate_run", lambda run, *a, **k: scored.append(run.path.name) or score(run, *a, **k))
    with pytest.raises(KeyboardInterrupt):
        run_sweep(tried, tmp_path)
    before = {name: (tmp_path / name / "model" / "model.safetensors").read_bytes() for name in scored}
    swept = run_sweep(replace(tried, budget=10.0), tmp_path)
    assert trained == ["mle", "ul=1.0", "sg=0.5", "sg=0.5"]  # what is finished is not even loaded
    assert scored == ["mle-seed-0", "ul-1.0-seed-0", "sg-0.5-seed-0"]  # nothing was scored twice
    assert {name: (tmp_path / name / "model" / "model.safetensors").read_bytes() for name in before} == before
    assert [(s.objective, s.strength, s.penalty) for s in swept.comparison.systems] == [
        ("mle", None, None),
        ("ul", 1.0, None),
        ("sg", 0.5, None),
        ("mle", None, "gamma=0.5"),
        ("human", None, None),
    ]
    _check_against_the_files(swept, tmp_path)
    again = run_sweep(replace(tried, prefixes=4), tmp_path)  # other limits: scored anew
    assert scored[3:] == scored[:3]
    assert again.comparison.systems[0].figures["n_texts"] == 4
    run_sweep(replace(tried, prefixes=0), tmp_path)  # the texts that are there do no harm
    assert len(scored) == 6


def test_a_finished_run_is_found_however_its_model_is_spelled(tried, saved_tiny, tmp_path, monkeypatch):
    job = replace(tried, prefixes=0).jobs()[0]
    jobs.run_job(job, tmp_path)
    monkeypatch.chdir(saved_tiny.parent)
    (saved_tiny.parent / "other").mkdir(exist_ok=True)
    out = tmp_path / job.name
    for model in (f"{saved_tiny}/", f"./{saved_tiny.name}", saved_tiny.name):
        assert find_finished(replace(job.config, model=model), out).path == out
    assert find_finished(replace(job.config, model="./other"), out) is None
    assert find_finished(replace(job.config, model="other"), out) is None
    write_json(out / "config.json", Run.open(out).config | {"model": saved_tiny.name})  # relative: to which folder?
    assert find_finished(replace(job.config, model=saved_tiny.name), out).path == out
    assert find_finished(replace(job.config, model=str(saved_tiny)), out) is None


def test_a_model_with_code_of_its_own_is_loaded_as_it_was_trained(tried, tmp_path, monkeypatch):
    trusted = []
    load = jobs.load
    monkeypatch.setattr(jobs, "load", lambda *a, **k: trusted.append(k["trust_remote_code"]) or load(*a, **k))
    for answer in (True, False):
        sweep = replace(tried, prefixes=0, config=replace(tried.config, trust_remote_code=answer))
        jobs.run_job(sweep.jobs()[0], tmp_path / str(answer))
    assert trusted == [True, False]


def _check_against_the_files(swept: Swept, folder: Path) -> None:
    """The figures are what the runs' own records say; what is written can be read again."""
    own = Run.open(folder / "sg-0.5-seed-0").rows()
    system = swept.comparison.chosen
    assert (system.objective, system.strength) == ("sg", 0.5)
    for name in ("ppl", "calibrated_ppl", "rep_1"):
        assert system.figures[name] == next(r.value for r in own if r.metric == name and r.objective == "sg")
    paths = write_results(swept, folder)
    rows = read_rows(paths["rows"])
    assert rows == list(swept.comparison.rows)
    assert {(row.seed, row.sd) for row in rows} == {(None, None)}  # means, here of one seed
    assert {row.n for row in rows if row.objective != "human"} == {1}
    assert json.loads(paths["recommendation"].read_text())["sentence"] == swept.recommendation.sentence
    assert swept.recommendation.sentence.split(":")[0] in paths["table"].read_text()
    assert swept.recommendation.sentence.split(":")[0] in paths["page"].read_text()
    names = {path.name for path in paths["plots"].iterdir()}
    assert names == {"validation.png", "seen-mass.png", "repetition.png", "trade-off-rep-1.png"}
    assert paths["table"].read_text().count("\n| ") == 6


def figures(swept: Swept) -> list[tuple[Any, ...]]:
    """The rows of a sweep but for those of the clock and of the machine."""
    return [
        (r.run, r.objective, r.strength, r.decoding, r.penalty, r.metric, r.value, r.n)
        for r in swept.comparison.rows
        if r.metric not in ("train_seconds", "tokens_per_second", "peak_memory_mib")
    ]


def test_a_sweep_stopped_three_times_has_the_rows_of_one_that_ran_through(tried, tmp_path, monkeypatch):
    """Stopped before a checkpoint, between training and scoring, and in the middle of scoring."""
    small = replace(tried, alpha=(), config=replace(tried.config, settings=replace(tried.config.settings, max_steps=3)))
    whole = run_sweep(small, tmp_path / "whole", devices=())
    places: list[str] = []
    stop = {"at": ""}

    def stopping(place: str, function: Any, after: int = 0) -> Any:
        def called(*arguments: Any, **options: Any) -> Any:
            places.append(place)
            if place == stop["at"] and places.count(place) > after:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return called

    monkeypatch.setattr(RunTrainer, "training_step", stopping("training", RunTrainer.training_step, after=1))
    monkeypatch.setattr(jobs, "load", stopping("loading", jobs.load))
    monkeypatch.setattr(evaluation, "text_figures", stopping("text", evaluation.text_figures, after=1))
    for place in ("training", "loading", "text"):
        places.clear()
        stop["at"] = place
        with pytest.raises(KeyboardInterrupt):
            run_sweep(small, tmp_path / "stopped", devices=())
    stop["at"] = ""
    resumed = run_sweep(small, tmp_path / "stopped", devices=())
    assert figures(resumed) == figures(whole)
    assert resumed.recommendation == whole.recommendation


def test_a_run_that_fails_is_named_at_the_end_and_the_others_are_done(tried, tmp_path, monkeypatch):
    real = jobs.train

    def fails_for_ul(config: TrainConfig, out: Path, **options: Any) -> Any:
        if config.objective.name == "ul":
            raise RuntimeError("the disk is full")
        return real(config, out, **options)

    monkeypatch.setattr(jobs, "train", fails_for_ul)
    with pytest.raises(JobsFailed, match=r"1 of 3 jobs failed.*ul-1\.0-seed-0.*the disk is full"):
        run_sweep(tried, tmp_path, devices=())
    assert [jobs.is_done(job, tmp_path) for job in tried.jobs()] == [True, False, True]
    monkeypatch.setattr(jobs, "train", real)
    run_sweep(tried, tmp_path, devices=())
    assert all(jobs.is_done(job, tmp_path) for job in tried.jobs())


def test_processes_share_the_jobs(tried, tmp_path):
    """As with several GPUs: a process each, the same figures as in one process; a mistake names its run."""
    steps = []
    small = replace(tried, alpha=(), prefixes=1)
    shared = run_sweep(small, tmp_path / "two", devices=("", ""), progress=lambda *step: steps.append(step))
    assert [step for step in steps if step[0] == "runs"] == [("runs", 1, 2), ("runs", 2, 2)]
    alone = run_sweep(small, tmp_path / "one", devices=())
    for a, b in zip(shared.comparison.systems, alone.comparison.systems, strict=True):
        # Processes have other numbers of threads, and sums another order.
        assert a.label == b.label
        assert dict(a.figures) == pytest.approx(dict(b.figures), rel=1e-3)
