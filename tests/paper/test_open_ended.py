"""The open-ended reproductions on a tiny model: figures against the runs' own files and independent counts."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, TrainerCallback

from paper import open_ended, open_ended_decoding, open_ended_scale, packing, saved_model
from paper.catalogue import find, prepare
from paper.examples import SAMPLES
from paper.open_ended_scale import GRID, MAIN, jobs_of, scale_of
from paper.outcome import NotGiven, Setup
from paper.printed import SETTINGS
from scalegrad import objectives
from scalegrad.data import encode_corpus, wikitext103
from scalegrad.lab import jobs
from scalegrad.metrics import clean_up_spaces
from scalegrad.runs import Run, run_jobs, run_name, samples_name
from scalegrad.tasks.open_ended.training import train

TEST, VALID = ("wikitext-103", "test"), ("wikitext-103", "valid")


def rep_1(text: str) -> float:
    """1 − distinct/all words, written anew."""
    words = re.findall(r"\w+|[^\w\s]|\n", clean_up_spaces(text))
    return 1 - len(set(words)) / len(words)


def both_seeds(setup: Setup, objective: str) -> list[Run]:
    return [Run.open(setup.open_ended / run_name(objective, seed)) for seed in range(2)]


def value(run: Run, metric: str, where: tuple[str, str | None] = TEST, **fields: Any) -> float:
    """The run's own figure."""
    wanted = {"objective": run.about()["objective"], "corpus": where[0], "split": where[1], "penalty": None, **fields}
    rows = [row for row in run.rows() if row.metric == metric]
    (row,) = [row for row in rows if all(getattr(row, name) == one for name, one in wanted.items())]
    return float(row.value)


def trained(setup: Setup, trainings: list[jobs.Job]) -> list[Run]:
    for _ in range(2):  # a model that is made here is a job of its own
        run_jobs(jobs_of(setup, trainings), setup.runs, devices=setup.devices)
    return [Run.open(setup.open_ended / one.name) for one in trainings]


def table(outcome: Any, title: str) -> dict[str, Any]:
    (found,) = [shown.comparison for shown in outcome.tables if shown.title.startswith(title)]
    return {system.label: system for system in found.systems}


# ---- what is asked ---------------------------------------------------------------------------------------------------


def test_the_gpu_scale_trains_what_matters_first(tmp_path):
    scale, jobs = scale_of(Setup("gpu", tmp_path)), open_ended.wikitext_trainings(Setup("gpu", tmp_path))
    main = [f"{name}-seed-{seed}" for seed in range(3) for name in ("mle", "ul-1.0", "sg-0.2")]
    grid = [[f"{name}-seed-{seed}" for name in ("ul-0.5", "ul-1.5", "sg-0.5", "sg-0.8")] for seed in range(3)]
    curves = ["ul-2.0", "ul-3.0", "sg-0.1", "sg-0.3", "sg-0.4", "sg-0.6", "sg-0.7", "sg-0.9"]
    curves += ["sg-linear-1.0-0.2-500", "sg-linear-0.2-1.0-500"]
    assert [job.name for job in jobs] == [*main, *grid[0], *(f"{name}-seed-0" for name in curves), *grid[1], *grid[2]]
    first, second = jobs[0:4:3]
    assert first.measured[0].strategies == second.measured[0].strategies == ("greedy",)
    assert len(first.measured[-1].strategies) == 1 + 9 + 5  # greedy, each γ, what Hugging Face offers
    assert second.measured[-1].strategies == ("greedy", *(f"greedy,gamma={g}" for g in (0.2, 0.5, 0.8)))
    assert [m.corpus for m in first.measured] == ["wikitext-103", "wikitext-103:valid", "wikitext-103"]
    settings = scale.config.settings
    assert (settings.max_steps, settings.batch, settings.learning_rate) == (500, 32, 3e-5)
    assert (scale.config.length, settings.evaluate_every, scale.config.data) == (300, 250, ("wikitext-2",))
    assert (scale.chunks, scale.prefixes, scale.new_tokens) == (None, None, 100)


def test_the_papers_scale_field_by_field(tmp_path):
    scale, told = scale_of(Setup("paper", tmp_path)), SETTINGS["open-ended"]
    config, settings = scale.config, scale.config.settings
    assert config.model == "openai-community/gpt2-medium"
    assert settings.max_steps == told["all"]["max_steps"]
    assert settings.evaluate_every == told["all"]["evaluate_every"]
    assert config.length == told["all"]["sequence_tokens"]
    assert scale.seeds == told["all"]["seeds"]
    assert settings.batch * settings.accumulation * config.length == told["mle"]["batch"]
    assert scale.new_tokens == told["completion"]["new_tokens"]
    tried = [objectives.parse(name) for name in (*MAIN, *GRID)]
    for name in ("mle", "ul", "sg"):
        assert settings.learning_rate == told[name]["learning_rate"]
    assert sorted(o.strength for o in tried if o.name == "ul") == list(told["ul"]["alpha"])
    assert sorted(o.strength for o in tried if o.name == "sg") == list(told["sg"]["gamma"])
    assert (scale.chunks, scale.prefixes) == (None, None)


def test_runs_lie_where_the_experiments_look_for_them(tmp_path):
    for scale in ("smoke", "gpu", "paper"):
        setup = Setup(scale, tmp_path)
        assert setup.open_ended == tmp_path / "runs" / Path(scale_of(setup).config.model).name


def test_the_papers_scale_down_to_its_first_step(saved_small, tmp_path):
    """Local weights and text in place of the hub's: the first step is taken at the paper's rate, on 300 tokens."""

    class First(Exception):
        pass

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_log(self, *_: Any, **__: Any) -> None:
            raise First

    text = tmp_path / "train.txt"
    text.write_text(wikitext103("valid")[:20_000])
    setup = Setup("paper", tmp_path, str(saved_small), data={"wikitext-103": str(text)})
    job = open_ended.wikitext_trainings(setup)[2]
    with pytest.raises(First):
        train(replace(job.config, validation_sequences=2), tmp_path / job.name, callbacks=[Stop()])
    run = Run.open(tmp_path / "sg-0.2-seed-0")
    assert run.config["data"] == [str(text)]
    assert run.config["sequences"]["train"]["targets"] % 299 == 0
    assert run.config["settings"]["max_steps"] == 35_000
    assert not run.finished


# ---- the main table --------------------------------------------------------------------------------------------------


def test_rows_are_means_of_the_runs_with_their_deviations(done, setup):
    rows = table(done["wikitext"], "WikiText-103 test")
    assert list(rows) == ["MLE", "UL α=1.0", "SG γ=0.2", "Human"]
    for objective in MAIN:
        row = rows[objectives.parse(objective).label]
        for name, decoding in (("ppl", None), ("rep_1", "greedy")):
            values = [value(run, name, decoding=decoding) for run in both_seeds(setup, objective)]
            assert row.figures[name] == pytest.approx(statistics.mean(values))
            assert row.deviations[name] == pytest.approx(statistics.stdev(values))
    behind = [row for row in done["wikitext"].rows if (row.metric, row.objective, row.split) == ("ppl", "sg", "test")]
    of_sg = [row for row in behind if row.strength == 0.2]
    assert [(row.run, row.seed) for row in of_sg] == [("sg-0.2-seed-0", 0), ("sg-0.2-seed-1", 1)]


def test_texts_are_scored_as_they_were_written(done, setup):
    run = both_seeds(setup, "sg=0.2")[0]
    lines = (run.path / "samples" / samples_name(*TEST, "greedy")).read_text().splitlines()
    texts = [json.loads(line)["continuation"] for line in lines]
    assert len(texts) == 3
    assert value(run, "rep_1", decoding="greedy") == pytest.approx(statistics.mean(map(rep_1, texts)))
    without = [rep_1(text.replace("<unk>", "")) for text in texts]
    rows = table(done["wikitext"], "The same texts without")
    assert value(run, "rep_1_no_unk", decoding="greedy") == pytest.approx(statistics.mean(without))
    assert set(rows["SG γ=0.2"].figures) == {"rep_1_no_unk", "rep_2_no_unk", "rep_3_no_unk"}


def test_rows_of_our_own(done, setup):
    rows = table(done["wikitext"], "Rows of our own")
    assert {"MLE, decoded with γ=0.2", "MLE, repetition_penalty=1.2", "MLE, block=3"} <= set(rows)
    assert "SG γ=linear:1.0:0.2:2" in rows
    assert "SG γ=0.5" not in rows
    runs = both_seeds(setup, "mle")
    twin, other = rows["MLE, decoded with γ=0.2"], rows["MLE, repetition_penalty=1.2"]
    assert [twin.runs, other.runs] == [2, 1]
    expected = [value(run, "ppl", decoding=None, penalty="gamma=0.2") for run in runs]
    assert twin.figures["ppl"] == pytest.approx(statistics.mean(expected))
    fields = {"decoding": "greedy", "penalty": "repetition_penalty=1.2"}
    assert other.figures["rep_1"] == value(runs[0], "rep_1", **fields)
    assert "ppl" not in other.figures
    curves = table(done["wikitext"], "Every point")
    assert "MLE, repetition_penalty=1.2" not in curves
    assert {"MLE, decoded with γ=0.2", "SG γ=0.5"} <= set(curves)


def test_the_grid_is_the_validation_text_with_one_seed(done, setup):
    rows = table(done["wikitext"], "WikiText-103 validation")
    assert len([row for row in rows.values() if row.kind == "trained"]) == 7
    first, second = both_seeds(setup, "ul=1.5")
    assert rows["UL α=1.5"].figures["ppl"] == value(first, "ppl", VALID)
    assert rows["UL α=1.5"].runs == 1
    assert not [row for row in second.rows() if row.split == "valid"]
    assert {plot.name for plot in done["wikitext"].plots} == {"trade-off-rep-1", "trade-off-rep-window-128"}
    assert done["wikitext"].made["seeds"] == [0, 1]


# ---- the other experiments -------------------------------------------------------------------------------------------


def test_decodings_stand_beside_each_other(done, setup):
    rows = table(done["decoding"], "Decoding")
    sg = [label for label, row in rows.items() if row.objective == "sg"]
    assert sg == ["SG γ=0.2", *(f"SG γ=0.2, {name}" for name in ("beam=3", "top_p=0.9", "top_k=40"))]
    first, second = both_seeds(setup, "ul=1.0")
    for name in ("beam=3", "top_k=40"):
        assert rows[f"UL α=1.0, {name}"].figures["rep_2"] == value(first, "rep_2", decoding=name)
        assert rows[f"UL α=1.0, {name}"].figures["ppl"] == value(first, "ppl", decoding=None)
    assert not [row for row in second.rows() if row.decoding == "beam=3"]


def test_lengths_are_beginnings_of_one_text(done, setup, small):
    """Against `generate` of the library itself, and words counted anew."""
    rows = table(done["lengths"], "Rep-1 by")
    runs, where = both_seeds(setup, "mle"), ("wikitext-103, 2 prefixes", "test")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(runs[0].model_path), small[1]
    ids = encode_corpus(wikitext103("test"), tokenizer).tolist()
    chunks = [ids[at : at + 300] for at in range(0, len(ids) - 300, 301)]
    prefixes = [chunk[at : at + 50] for chunk in chunks for at in range(0, 300, 50)]
    two = torch.tensor([prefixes[0], prefixes[len(prefixes) // 2]])
    texts = model.generate(two, max_new_tokens=300, min_new_tokens=300, do_sample=False)[:, 50:]
    for length in (50, 200, 300):
        expected = statistics.mean(rep_1(tokenizer.decode(text[:length])) for text in texts)
        assert value(runs[0], "rep_1", where, new_tokens=length) == pytest.approx(expected)
    human = statistics.mean(rep_1(tokenizer.decode(chunks[at][:200])) for at in (0, len(chunks) // 2))
    assert value(runs[0], "rep_1", where, new_tokens=200, objective="human") == pytest.approx(human)
    both = [value(run, "rep_1", where, new_tokens=250) for run in runs]
    assert rows["MLE"].figures["rep_1_at_250"] == pytest.approx(statistics.mean(both))
    assert rows["MLE"].deviations["rep_1_at_250"] == pytest.approx(statistics.stdev(both))
    assert any("2 of" in note and "beginnings" in note for note in done["lengths"].tables[0].comparison.notes)


def test_sensitivity_has_every_gamma_and_no_texts(done, setup):
    rows = table(done["sensitivity"], "WikiText-103 validation over")
    assert [label for label, row in rows.items() if row.kind == "trained"] == [
        "MLE", "UL α=0.5", "UL α=1.0", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2",
    ]  # fmt: skip
    assert "rep_1" not in rows["SG γ=0.5"].figures
    assert rows["SG γ=0.5"].figures["uniq"] == value(both_seeds(setup, "sg=0.5")[0], "uniq", VALID)
    assert [plot.name for plot in done["sensitivity"].plots] == [
        "sensitivity-ppl", "sensitivity-rep", "sensitivity-uniq", "sensitivity-each",
    ]  # fmt: skip


def test_texts_that_users_bring(done, setup, tmp_path):
    refused, _ = prepare(find(["ptb", "imdb"]), setup)
    assert all(isinstance(error, NotGiven) for error in refused.values())
    assert "(--ptb PATH)" in str(refused["ptb"])
    assert "(--imdb PATH)" in str(refused["imdb"])
    lines = wikitext103("test").splitlines()[100:400]
    (tmp_path / "ptb.test.txt").write_text("\n".join(line for line in lines if line.strip()) + "\n")
    reviews = [json.dumps({"text": f"Review {n}: a film about the number {n % 7}."}) for n in range(510)]
    (tmp_path / "reviews.jsonl").write_text("\n".join(reviews) + "\n")
    both = replace(setup, data={"ptb": str(tmp_path), "imdb": str(tmp_path / "reviews.jsonl")})
    experiments = find(["ptb", "imdb"])
    assert prepare(experiments, both) == ({}, {})
    for experiment, where in zip(experiments, (("ptb", "test"), ("imdb", None)), strict=True):
        rows = table(experiment.show(both), experiment.name)
        values = [value(run, "ppl", where) for run in both_seeds(setup, "sg=0.2")]
        assert rows["SG γ=0.2"].figures["ppl"] == pytest.approx(statistics.mean(values))
    (tmp_path / "ptb.test.txt").unlink()
    assert prepare(experiments[:1], setup) == ({}, {})
    again = table(experiments[0].show(setup), "ptb test")  # the figures are there: the text is not wanted again
    assert again["MLE"].runs == 2


# ---- machines --------------------------------------------------------------------------------------------------------


def test_results_travel_without_weights(done, setup, tmp_path, monkeypatch):
    """Packed, unpacked elsewhere and shown again: the same rows, nothing trained, nothing loaded."""
    kept = packing.pack(setup.out, tmp_path / "results.tar.xz")
    assert not [path for path in kept if path.suffix == ".safetensors"]
    texts = {path.parts[2] for path in kept if "samples" in path.parts and path.name != Path(SAMPLES).name}
    assert texts == {"mle-seed-0", "ul-1.0-seed-0", "sg-0.2-seed-0"}
    with tarfile.open(tmp_path / "results.tar.xz") as archive:
        archive.extractall(tmp_path / "elsewhere", filter="data")
    for name in ("train", "load"):
        monkeypatch.setattr(jobs, name, lambda *a, **k: pytest.fail("nothing is to be trained or loaded"))
    gone = tmp_path / "other machine" / "tiny"
    recorded = Path(setup.model)
    moved = recorded.rename(recorded.with_name("away"))  # the folder the runs name is not there any more
    try:
        elsewhere = replace(setup, out=tmp_path / "elsewhere", model=str(gone))
        for run, name in (
            (open_ended.wikitext, "wikitext"), (open_ended_decoding.decoding, "decoding"),
            (open_ended_decoding.lengths, "lengths"), (open_ended.sensitivity, "sensitivity"),
        ):  # fmt: skip
            for before, after in zip(done[name].tables, run(elsewhere).tables, strict=True):
                assert [(s.label, s.figures, s.deviations) for s in before.comparison.systems] == [
                    (s.label, s.figures, s.deviations) for s in after.comparison.systems
                ]
    finally:
        moved.rename(recorded)


def test_what_is_there_is_shown(done, setup, tmp_path, monkeypatch):
    """A GPU that was given back too early: of the runs that are missing nothing is trained, the rest is shown."""
    shutil.copytree(setup.out / "runs", tmp_path / "runs")
    for name in ("ul-1.5-seed-0", "sg-0.2-seed-1"):
        shutil.rmtree(tmp_path / "runs" / "tiny" / name)
    monkeypatch.setattr(jobs, "train", lambda *a, **k: pytest.fail("nothing is to be trained"))
    here = replace(setup, out=tmp_path, only_done=True)
    rows = table(open_ended.wikitext(here), "WikiText-103 test")
    assert [rows[objectives.parse(name).label].runs for name in MAIN] == [2, 2, 1]
    assert table(open_ended_decoding.lengths(here), "Rep-1 by")["SG γ=0.2"].runs == 1
    assert len(table(open_ended_decoding.decoding(here), "Decoding")) == 13
    with pytest.raises(NotGiven, match="no run has figures on wikitext-103 yet"):
        open_ended.wikitext(replace(here, out=tmp_path / "empty"))


@pytest.mark.parametrize("there", [("mle",), ("sg-0.2",), ("mle", "ul-1.0", "sg-0.2")])
def test_the_least_that_is_there_is_shown(done, setup, tmp_path, there):
    """One seed of one objective, or of the main ones: every experiment gives a table, or says what is missing."""
    for name in there:
        shutil.copytree(setup.out / "runs" / "tiny" / f"{name}-seed-0", tmp_path / "runs" / "tiny" / f"{name}-seed-0")
    other = tmp_path / "elsewhere" / "tiny"  # another folder of the model's name: nothing is trained, so that will do
    here = replace(setup, out=tmp_path, model=str(other), only_done=True)
    outcome = open_ended.wikitext(here)
    rows = table(outcome, "WikiText-103 test")
    trained_rows = [row for row in rows.values() if row.kind == "trained"]
    assert [(row.label, row.runs) for row in trained_rows] == [
        (objectives.parse(n.replace("-", "=")).label, 1) for n in there
    ]
    assert table(outcome, "WikiText-103 validation")
    assert len(table(open_ended_decoding.decoding(here), "Decoding")) == 4 * len(there) + 1
    assert table(open_ended.sensitivity(here), "WikiText-103 validation over")
    if set(there) >= {"mle", "sg-0.2"}:
        assert table(open_ended_decoding.lengths(here), "Rep-1 by")["MLE"].runs == 1
    else:
        with pytest.raises(NotGiven, match="no runs of MLE and ScaleGrad have figures by length yet"):
            open_ended_decoding.lengths(here)
    for name in there:  # stopped before the validation text, and before any text was written
        run = Run.open(tmp_path / "runs" / "tiny" / f"{name}-seed-0")
        rows_left = [row for row in run.rows() if row.split != "valid" and row.new_tokens is None]
        run.save("results.jsonl", [row.as_dict() for row in rows_left])
    outcome = open_ended.wikitext(here)
    assert "rep_1" not in table(outcome, "WikiText-103 test")[trained_rows[0].label].figures
    assert not [shown for shown in outcome.tables if "validation" in shown.title]


def test_a_gguf_file_is_unpacked_once(small, saved_small, tmp_path, monkeypatch):
    """To read one takes longer than a short run, and every run would; what was unpacked has the same weights."""
    read = []
    monkeypatch.setattr(saved_model, "load", lambda name, *rest: read.append(name) or small)
    setup = Setup("smoke", tmp_path, "models/tiny.Q4_1.gguf")
    scale = scale_of(setup)
    assert scale.config.model == str(tmp_path / "unpacked" / "tiny.Q4_1")
    for objective in ("mle", "sg=0.2"):
        (run,) = trained(setup, [scale.job(objective, 0)])
    assert read == ["models/tiny.Q4_1.gguf"]
    assert run.path == tmp_path / "runs" / "tiny.Q4_1" / "sg-0.2-seed-0"
    (other,) = trained(Setup("smoke", tmp_path / "other", str(saved_small)), [scale_of(
        Setup("smoke", tmp_path, str(saved_small))).job("sg=0.2", 0)])  # fmt: skip
    assert run.config["weights"] == other.config["weights"]
    assert run.load("done")["validation_nll"] == other.load("done")["validation_nll"]
    assert packing.pack(tmp_path, tmp_path / "x.tar.xz")
    assert not [path for path in packing.pack(tmp_path, tmp_path / "x.tar.xz") if "unpacked" in path.parts]


def test_processes_of_one_gpu(tmp_path, monkeypatch):
    """As many as its memory serves, on the GPU that this process was given."""
    from types import SimpleNamespace

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for gib, processes in ((16, 1), (40, 1), (48, 2), (80, 3), (139.8, 4), (300, 4)):
        told = SimpleNamespace(total_memory=int(gib * 2**30))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda place, told=told: told)
        assert list(open_ended_scale.devices_of(Setup("gpu", tmp_path))) == ["3"] * processes
    assert open_ended_scale.devices_of(Setup("smoke", tmp_path)) is None
    assert open_ended_scale.devices_of(Setup("gpu", tmp_path, devices=("1",))) == ("1",)


def test_a_base_model_that_is_not_there(tmp_path):
    refused, failed = prepare(find(["wikitext"]), Setup("gpu", tmp_path))
    assert "base-small is not there: make it (python -m paper.base_model" in str(refused["wikitext"])
    assert failed == {}


def test_nothing_half_done_is_taken_for_done(setup, done, tmp_path):
    """A run of other settings, or with fewer prefixes, is not what was asked for."""
    scale = scale_of(setup)
    job = scale.job("mle", 0, open_ended.scoring_of(scale, "wikitext-103"))
    folder = setup.open_ended
    assert jobs.is_done(job, folder)
    more = replace(job, measured=(replace(job.measured[0], prefixes=4),))
    assert not jobs.is_done(more, folder)
    longer = replace(job, measured=(replace(job.measured[0], new_tokens=50),))
    assert not jobs.is_done(longer, folder)
    other = replace(job, config=replace(job.config, length=50))
    assert not jobs.is_done(other, folder)
    with pytest.raises(ValueError, match=r"holds another run: its length is 100, not 50"):
        jobs.run_job(other, folder)
    shutil.copytree(folder / job.name, tmp_path / job.name)
    (tmp_path / job.name / "done.json").unlink()
    assert not jobs.is_done(job, tmp_path)
