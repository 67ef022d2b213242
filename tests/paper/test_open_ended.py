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

from paper import NotGiven, Setup, open_ended, open_ended_decoding, open_ended_scale, packing, saved_model
from paper.examples import SAMPLES
from paper.open_ended_scale import GRID, MAIN, folder_of, scale_of, trained
from paper.printed import SETTINGS
from scalegrad import objectives
from scalegrad.data import encode_corpus, wikitext103
from scalegrad.lab import jobs
from scalegrad.metrics import clean_up_spaces
from scalegrad.runs import Run, samples_name
from scalegrad.tasks.open_ended.training import train

TEST = "wikitext-103 test"


def rep_1(text: str) -> float:
    """1 − distinct/all words, written anew."""
    words = re.findall(r"\w+|[^\w\s]|\n", clean_up_spaces(text))
    return 1 - len(set(words)) / len(words)


def runs_of(setup: Setup, objective: str) -> list[Run]:
    name = objective.replace("=", "-")
    folder = folder_of(setup, setup.model)
    return [Run.open(folder / f"{name}-seed-{seed}") for seed in range(2)]


def table(outcome: Any, title: str) -> dict[str, Any]:
    (found,) = [shown.comparison for shown in outcome.tables if shown.title.startswith(title)]
    return {system.label: system for system in found.systems}


# ---- what is asked ---------------------------------------------------------------------------------------------------


def test_the_gpu_scale_trains_what_matters_first(tmp_path):
    scale, jobs = scale_of(Setup("gpu", tmp_path)), open_ended.wikitext_jobs(Setup("gpu", tmp_path))
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
    assert settings.batch * settings.accumulation * config.length == told["MLE"]["batch"]
    assert scale.new_tokens == told["completion"]["new_tokens"]
    tried = [objectives.parse(name) for name in (*MAIN, *GRID)]
    for name in ("MLE", "UL", "SG"):
        assert settings.learning_rate == told[name]["learning_rate"]
    assert sorted(o.strength for o in tried if o.name == "ul") == list(told["UL"]["alpha"])
    assert sorted(o.strength for o in tried if o.name == "sg") == list(told["SG"]["gamma"])
    assert (scale.chunks, scale.prefixes) == (None, None)


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
    job = open_ended.wikitext_jobs(setup)[2]
    with pytest.raises(First):
        train(replace(job.config, validation_sequences=2), tmp_path / job.name, callbacks=[Stop()])
    run = Run.open(tmp_path / "sg-0.2-seed-0")
    assert run.config["data"] == [str(text)]
    assert run.config["data"]["train"]["targets"] % 299 == 0
    assert run.config["settings"]["max_steps"] == 35_000
    assert not run.finished


# ---- the main table --------------------------------------------------------------------------------------------------


def test_rows_are_means_of_the_runs_with_their_deviations(done, setup):
    rows = table(done["wikitext"], "WikiText-103 test")
    assert list(rows) == ["MLE", "UL α=1.0", "SG γ=0.2", "Human"]
    for objective in MAIN:
        row, found = (
            rows[objectives.parse(objective).label],
            [r.load("evaluation")[TEST] for r in runs_of(setup, objective)],
        )
        for part, name in (("language_modelling", "ppl"), ("completion", "rep_1")):
            values = [e[part]["greedy"][name] if part == "completion" else e[part][name] for e in found]
            assert row.figures[name] == pytest.approx(statistics.mean(values))
            assert row.deviations[name] == pytest.approx(statistics.stdev(values))
        first = runs_of(setup, objective)[0]
        warm = first.load("done")["seconds"] - first.metrics()[0]["seconds"]  # without the first step
        assert row.figures["train_seconds"] == pytest.approx(warm)
        assert row.figures["peak_memory_mib"] == first.load("done")["peak_memory_mib"]


def test_texts_are_scored_as_they_were_written(done, setup):
    run = runs_of(setup, "sg=0.2")[0]
    lines = (run.path / "samples" / samples_name(TEST, "greedy")).read_text().splitlines()
    texts = [json.loads(line)["continuation"] for line in lines]
    assert len(texts) == 3
    stored = run.load("evaluation")[TEST]["completion"]["greedy"]
    assert stored["rep_1"] == pytest.approx(statistics.mean(map(rep_1, texts)))
    without = [rep_1(text.replace("<unk>", "")) for text in texts]
    rows = table(done["wikitext"], "The same texts without")
    assert stored["rep_1_no_unk"] == pytest.approx(statistics.mean(without))
    assert set(rows["SG γ=0.2"].figures) == {"rep_1_no_unk", "rep_2_no_unk", "rep_3_no_unk"}


def test_rows_of_our_own(done, setup):
    rows = table(done["wikitext"], "Rows of our own")
    assert {"MLE, decoded with γ=0.2", "MLE, repetition_penalty 1.2", "MLE, no_repeat_ngram_size 3"} <= set(rows)
    assert "SG γ=linear:1.0:0.2:2" in rows
    assert "SG γ=0.5" not in rows
    mle = [run.load("evaluation")[TEST] for run in runs_of(setup, "mle")]
    assert [rows[name].runs for name in ("MLE, decoded with γ=0.2", "MLE, repetition_penalty 1.2")] == [2, 1]
    twin = rows["MLE, decoded with γ=0.2"]
    assert twin.figures["ppl"] == pytest.approx(statistics.mean(e["penalised"]["gamma=0.2"]["ppl"] for e in mle))
    other = rows["MLE, repetition_penalty 1.2"].figures
    key = "greedy,repetition_penalty=1.2"
    assert other["rep_1"] == mle[0]["completion"][key]["rep_1"]
    assert "ppl" not in other


def test_the_grid_is_the_validation_text_with_one_seed(done, setup):
    rows = table(done["wikitext"], "WikiText-103 validation")
    assert len([row for row in rows.values() if row.kind == "trained"]) == 7
    found = runs_of(setup, "ul=1.5")[0].load("evaluation")
    assert rows["UL α=1.5"].figures["ppl"] == found["wikitext-103 valid"]["language_modelling"]["ppl"]
    assert rows["UL α=1.5"].runs == 1
    assert "wikitext-103 valid" not in runs_of(setup, "ul=1.5")[1].load("evaluation")
    assert {plot.name for plot in done["wikitext"].plots} == {"trade-off-rep-1", "trade-off-rep-window-128"}
    assert done["wikitext"].made["seeds"] == [0, 1]


# ---- the other experiments -------------------------------------------------------------------------------------------


def test_decodings_stand_beside_each_other(done, setup):
    rows = table(done["decoding"], "Decoding")
    assert list(rows)[:4] == [f"SG γ=0.2 {name}" for name in ("greedy", "beam=3", "top_p=0.9", "top_k=40")]
    found = runs_of(setup, "ul=1.0")[0].load("evaluation")[TEST]
    for name in ("greedy", "beam=3", "top_k=40"):
        assert rows[f"UL α=1.0 {name}"].figures["rep_2"] == found["completion"][name]["rep_2"]
        assert rows[f"UL α=1.0 {name}"].figures["ppl"] == found["language_modelling"]["ppl"]
    assert "beam=3" not in runs_of(setup, "ul=1.0")[1].load("evaluation")[TEST]["completion"]


def test_lengths_are_beginnings_of_one_text(done, setup, small):
    """Against `generate` of the library itself, and words counted anew."""
    rows = table(done["lengths"], "Rep-1 by")
    run = runs_of(setup, "mle")[0]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(run.model_path), small[1]
    ids = encode_corpus(wikitext103("test"), tokenizer).tolist()
    chunks = [ids[at : at + 300] for at in range(0, len(ids) - 300, 301)]
    prefixes = [chunk[at : at + 50] for chunk in chunks for at in range(0, 300, 50)]
    two = torch.tensor([prefixes[0], prefixes[len(prefixes) // 2]])
    texts = model.generate(two, max_new_tokens=300, min_new_tokens=300, do_sample=False)[:, 50:]
    stored = run.load("lengths")[TEST]
    for length in (50, 200, 300):
        expected = statistics.mean(rep_1(tokenizer.decode(text[:length])) for text in texts)
        assert stored["model"][str(length)]["rep_1"] == pytest.approx(expected)
    human = statistics.mean(rep_1(tokenizer.decode(chunks[at][:200])) for at in (0, len(chunks) // 2))
    assert stored["human"]["200"]["rep_1"] == pytest.approx(human)
    both = [r.load("lengths")[TEST]["model"]["250"]["rep_1"] for r in runs_of(setup, "mle")]
    assert rows["MLE"].figures["rep_1_at_250"] == pytest.approx(statistics.mean(both))
    assert rows["MLE"].deviations["rep_1_at_250"] == pytest.approx(statistics.stdev(both))


def test_sensitivity_has_every_gamma_and_no_texts(done, setup):
    rows = table(done["sensitivity"], "WikiText-103 validation over")
    assert [label for label, row in rows.items() if row.kind == "trained"] == [
        "MLE", "UL α=0.5", "UL α=1.0", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2",
    ]  # fmt: skip
    assert "rep_1" not in rows["SG γ=0.5"].figures
    found = runs_of(setup, "sg=0.5")[0].load("evaluation")["wikitext-103 valid"]["language_modelling"]
    assert rows["SG γ=0.5"].figures["uniq"] == found["uniq"]
    assert [plot.name for plot in done["sensitivity"].plots] == [
        "sensitivity-ppl", "sensitivity-rep", "sensitivity-uniq", "sensitivity-each",
    ]  # fmt: skip


def test_texts_that_users_bring(done, setup, tmp_path):
    with pytest.raises(NotGiven, match=r"cannot be shipped: give its test text.*\(--ptb PATH\)"):
        open_ended.ptb(setup)
    with pytest.raises(NotGiven, match=r"\(--imdb PATH\)"):
        open_ended.imdb(setup)
    lines = wikitext103("test").splitlines()[100:400]
    (tmp_path / "ptb.test.txt").write_text("\n".join(line for line in lines if line.strip()) + "\n")
    reviews = [json.dumps({"text": f"Review {n}: a film about the number {n % 7}."}) for n in range(510)]
    (tmp_path / "reviews.jsonl").write_text("\n".join(reviews) + "\n")
    given = replace(setup, data={"ptb": str(tmp_path), "imdb": str(tmp_path / "reviews.jsonl")})
    for name, corpus in (("ptb", "ptb test"), ("imdb", "imdb")):
        rows = table(getattr(open_ended, name)(given), corpus)
        found = [run.load("evaluation")[corpus]["language_modelling"]["ppl"] for run in runs_of(setup, "sg=0.2")]
        assert rows["SG γ=0.2"].figures["ppl"] == pytest.approx(statistics.mean(found))
    (tmp_path / "ptb.test.txt").unlink()
    again = table(open_ended.ptb(setup), "ptb test")  # the figures are there: the text is not wanted again
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
                assert [s.as_dict() for s in before.comparison.systems] == [
                    s.as_dict() for s in after.comparison.systems
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
    with pytest.raises(NotGiven, match="no run has figures on wikitext-103 test yet"):
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
        found = run.load("evaluation")[TEST]
        run.save("evaluation", {TEST: {key: found[key] for key in found if key != "completion"}})
    outcome = open_ended.wikitext(here)
    assert "rep_1" not in table(outcome, "WikiText-103 test")[trained_rows[0].label].figures
    assert not [shown for shown in outcome.tables if "validation" in shown.title]


def test_processes_that_share_a_machine_time_nothing(saved_small, tmp_path):
    """The first seed of the three is trained alone before; only its time is kept."""
    setup = Setup("smoke", tmp_path, str(saved_small), devices=("", ""))
    scale = scale_of(setup)
    chosen = [scale.job(name, seed) for seed in (0, 1) for name in ("mle", "sg=0.2")]
    runs = trained(setup, chosen)
    assert [run.path.name for run in runs] == ["mle-seed-0", "sg-0.2-seed-0", "mle-seed-1", "sg-0.2-seed-1"]
    assert open_ended_scale.alone(folder_of(setup, str(saved_small))) == ["mle-seed-0", "sg-0.2-seed-0"]


def test_the_account_of_who_was_alone_survives_a_kill(saved_small, tmp_path, monkeypatch):
    """Killed in the middle, the same three go on alone; what one process did before counts as alone."""
    setup = Setup("smoke", tmp_path, str(saved_small))
    scale = scale_of(setup)
    chosen = [scale.job(name, 0) for name in MAIN]
    trained(setup, chosen[:1])  # by one process, without an account
    folder = folder_of(setup, str(saved_small))
    assert open_ended_scale.alone(folder) is None
    calls = []

    def killed(jobs_: Any, folder_: Path, *, devices: Any, progress: Any) -> None:
        calls.append(([job.name for job in jobs_], list(devices)))
        raise KeyboardInterrupt

    monkeypatch.setattr(open_ended_scale, "run_jobs", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            trained(replace(setup, devices=("7", "8")), chosen)
    assert calls == [(["ul-1.0-seed-0", "sg-0.2-seed-0"], ["7"])] * 2
    assert open_ended_scale.alone(folder) == ["mle-seed-0", "ul-1.0-seed-0", "sg-0.2-seed-0"]


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
    for gib, processes in ((16, 0), (40, 0), (48, 2), (80, 3), (139.8, 4), (300, 4)):
        told = SimpleNamespace(total_memory=int(gib * 2**30))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda place, told=told: told)
        assert list(open_ended_scale.devices_of(Setup("gpu", tmp_path))) == ["3"] * processes
    assert open_ended_scale.devices_of(Setup("smoke", tmp_path)) == []
    assert open_ended_scale.devices_of(Setup("gpu", tmp_path, devices=("1",))) == ("1",)


def test_a_base_model_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"base-small is not there: make it \(python -m paper.base_model"):
        open_ended.wikitext(Setup("gpu", tmp_path))


def test_nothing_half_done_is_taken_for_done(setup, done, tmp_path):
    """A run of other settings, or with fewer prefixes, is not what was asked for."""
    scale = scale_of(setup)
    job = scale.job("mle", 0, open_ended.scoring_of(scale, "wikitext-103"))
    folder = folder_of(setup, setup.model)
    assert jobs.is_done(job, folder)
    more = replace(job, measured=(replace(job.measured[0], prefixes=4),))
    assert not jobs.is_done(more, folder)
    longer = replace(job, measured=(replace(job.measured[0], new_tokens=50),))
    assert not jobs.is_done(longer, folder)
    other = replace(job, config=replace(job.config, length=50))
    assert not jobs.is_done(other, folder)
    with pytest.raises(ValueError, match=r"holds another run: its sequences.train.sequences is \d+, not \d+"):
        jobs.run_job(other, folder)
    shutil.copytree(folder / job.name, tmp_path / job.name)
    (tmp_path / job.name / "done.json").unlink()
    assert not jobs.is_done(job, tmp_path)
