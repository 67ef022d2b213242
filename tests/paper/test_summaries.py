"""Summarisation beside the paper: runs without weights, the paper's settings, its scale's first steps, differences."""

import json
from dataclasses import replace

import numpy as np
import pytest

from paper import summarization as experiment
from paper.catalogue import find, prepare
from paper.differences import differences, is_complete
from paper.outcome import NotGiven, Setup
from paper.printed import SETTINGS
from paper.summaries import jobs, summarization, summarization_decoding
from paper.summarization import Plan, chosen, jobs_of, runs_of
from paper.summary_plans import PAPER_CORPORA, paper_plan, plans, split_news
from scalegrad.data.pairs import Pair
from scalegrad.runs import Run, rows_of, run_jobs, run_name, samples_name
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.corpora import PAPER_SIZES
from scalegrad.tasks.summarization.recipes import small
from scalegrad.tasks.summarization.training import train
from tests.tiny_bert import save_tiny_bert

BEAM = "beam=5,block_words=3"
PAIRS = [Pair("1", ("a b c d e f g h",), ("a b c d",)), Pair("2", ("a b c d e f g h",), ("e f g h",))]


def store(plan, folder, objective, seed, rouge, score=20.0, texts=("a b c d", "e f g h")):
    """A finished, evaluated run: its records, and no weights."""
    config = {"task": "summarization", "model": plan.tasks[seed].model, "objective": objective,
              "recipe": plan.tasks[seed].recipe.record(), "data": {"name": plan.corpus}, "seed": seed}  # fmt: skip
    run = Run.create(folder / run_name(objective, seed), config)
    run.finish({"selected_step": 8, "steps": 9, "validation_ppl": 30.0, "seconds": 5.0})
    about = {**run.about(), "corpus": plan.corpus}
    for place, decoding in enumerate((BEAM, *(STOCHASTIC if objective == "mle" else ()))):
        figures = {"rouge_1": {"value": rouge - place, "low": 0.0, "high": 99.0, "n": 2}, "beta": 1.0}
        run.add(rows_of(figures, **about, split="test", decoding=decoding), {"corpus": plan.corpus, "split": "test",
                "decoding": decoding}, notes=["3 of 618 articles are cut."])  # fmt: skip
    run.add(rows_of({"mean_rouge": score}, **about, split="validation", decoding=BEAM))
    people = {**about, "objective": "human", "strength": None, "seed": None, "step": None}
    run.add(rows_of({"words": 19.6}, **people, split="test"))
    records = [{"id": p.id, "prefix": p.text, "continuation": t} for p, t in zip(PAIRS, texts, strict=True)]
    run.save(f"samples/{samples_name(plan.corpus, 'test', BEAM)}", records)
    return run


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """A grid with the first seed, MLE and the chosen α and γ with two more; nothing is left to do."""
    setup = Setup("gpu", tmp_path)
    (plan,) = plans(setup, tmp_path)
    folder = tmp_path / "runs" / "summarization" / "scitldr"
    for seed in range(3):
        store(plan, folder, "mle", seed, 30.0 + seed)
        store(plan, folder, "ul=1.0", seed, 40.0, score=30.0)
        store(plan, folder, "sg=0.2", seed, 50.0, score=30.0)
        (folder / run_name("selector", seed)).mkdir()
        (folder / run_name("selector", seed) / "done.json").write_text("{}")
    for objective in ("ul=0.5", "ul=1.5", "sg=0.5", "sg=0.8"):
        store(plan, folder, objective, 0, 20.0)
    monkeypatch.setattr(Plan, "test", lambda self: PAIRS)
    experiment._write_differences(replace(plan, how=replace(plan.how, mover=False)), folder)
    return setup


def test_runs_become_tables_without_weights(setup):
    assert [job.name for job in jobs(setup) if not job.is_done()] == []
    outcome = summarization(setup)
    ((title, table),) = [(shown.title, shown.comparison) for shown in outcome.tables]
    assert title == "BertSum on the abstracts of SciTLDR, 2 test texts"
    rows = {system.label: system for system in table.systems}
    assert list(rows)[:8] == [
        "MLE", "UL α=0.5", "UL α=1.0", "UL α=1.5", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2", "Human",
    ]  # fmt: skip
    mle, ul, sg = rows["MLE"], rows["UL α=1.0"], rows["SG γ=0.2"]
    assert (mle.figures["rouge_1"], mle.deviations["rouge_1"]) == (31.0, 1.0)
    assert (mle.runs, ul.runs, sg.runs, rows["UL α=0.5"].runs) == (3, 3, 3, 1)
    assert rows["UL α=0.5"].intervals["rouge_1"] == (0.0, 99.0)
    assert [label for label, row in rows.items() if row.chosen] == ["UL α=1.0", "SG γ=0.2"]
    assert rows["SG γ=0.8, in the paper"].figures["rouge_1"] == 42.19
    assert rows["SG γ=0.8, in the paper (NYT50)"].figures["rouge_1"] == 49.29
    assert "compare the order and the gaps, not the values" in outcome.notes[0]
    made = outcome.made["scitldr"]["runs"]
    assert made["sg-0.2-seed-2"] == "step 8 of 9, validation perplexity 30.00, 5 s; β=1"
    assert [plot.name for plot in outcome.plots] == ["scitldr-gains"]
    assert [len(system.samples) for system in table.systems[:2]] == [2, 2]


def test_sampling_against_the_beam(setup):
    outcome = summarization_decoding(setup)
    table = outcome.tables[0].comparison
    here = {system.label: system.figures["rouge_1"] for system in table.of_kind("trained", "decoded")}
    assert here == {"MLE": 31.0, "MLE, top_p=0.3": 30.0, "MLE, top_p=0.9": 29.0, "MLE, top_k=40": 28.0,
                    "MLE, top_k=100": 27.0}  # fmt: skip
    rows = {system.label: system.figures for system in table.systems}
    assert rows["MLE, beam=5, in the paper"] == {"rouge_1": 48.73, "moverscore_1": 28.73}
    assert [plot.name for plot in outcome.plots] == ["scitldr-decoding"]


# ---- a plan ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(tmp_path):
    bert = save_tiny_bert(tmp_path / "bert", positions=192)

    def task(seed):
        recipe = small(seed)
        return Task(
            str(bert),
            data="scitldr",
            recipe=replace(
                recipe,
                selector=replace(recipe.selector, max_steps=1, evaluate_every=1, tracker=(), dtype="float32"),
                writer=replace(recipe.writer, max_steps=2, evaluate_every=2, tracker=(), dtype="float32"),
                decoder_shape={"decoder_layers": 1, "decoder_inner": 16},
            ),
            limit=8,
        )

    how = Evaluation(betas=(0.0, 1.0), new_tokens=4, mover=False, batch=8)
    return Plan("scitldr", (task(0), task(1)), ("mle", "sg=0.8", "sg=0.5"), how, choose=2, limit=2)


def test_a_plan_is_done_in_stages_and_once(plan, tmp_path):
    """Stage 1, all three with the first seed, then MLE and the better γ with the second, then the differences."""
    folder = tmp_path / "runs" / "scitldr"
    stages = []
    while waiting := [job for job in jobs_of(plan, folder) if not job.is_done()]:
        stages.append([job.name.split("/")[1] for job in waiting])
        run_jobs(waiting, tmp_path / "runs")
    better = run_name(chosen(plan, folder)[1], 1)
    assert stages == [
        ["selector-seed-0", "selector-seed-1"], ["mle-seed-0", "sg-0.8-seed-0", "sg-0.5-seed-0"],
        ["mle-seed-1", better], ["differences"],
    ]  # fmt: skip
    scores = {row.strength: row.value for run in runs_of(plan, folder) for row in run.rows()
              if (row.metric, row.objective, row.seed) == ("mean_rouge", "sg", 0)}  # fmt: skip
    assert chosen(plan, folder) == ["mle", f"sg={max(scores, key=lambda strength: (scores[strength], -strength))}"]
    mle = Run.open(folder / "mle-seed-0").rows()
    assert {row.decoding for row in mle if row.metric == "rouge_1"} == {BEAM, *STOCHASTIC}
    assert jobs_of(plan, folder) == []
    other = replace(plan.tasks[0].recipe, source_tokens=99)
    with pytest.raises(ValueError, match="holds a run of other settings"):
        jobs_of(replace(plan, tasks=(replace(plan.tasks[0], recipe=other),)), folder)


def test_a_beta_that_is_set_is_not_chosen_and_the_only_strength_is(plan, tmp_path):
    one = replace(plan, tasks=plan.tasks[:1], objectives=("mle", "sg=0.8"), betas={"sg=0.8": 1.5})
    assert one.evaluation("sg=0.8").betas == (1.5,)
    assert one.evaluation("mle").strategies == STOCHASTIC
    assert chosen(one, tmp_path) == ["mle", "sg=0.8"]


def test_differences_from_mle_of_the_same_seeds_by_hand(plan, tmp_path):
    """ROUGE-1, of MLE 50 and 0 by seed, of SG 100 and 0: text 1 gains 0 and 0, text 2 100 and 0."""
    right, half, wrong = ("a b c d", "e f g h"), ("a b c d", "x y z w"), ("x y z w", "x y z w")
    runs = [store(plan, tmp_path, "mle", 0, 1.0, texts=half), store(plan, tmp_path, "mle", 1, 1.0, texts=wrong)]
    runs.append(store(plan, tmp_path, "sg=0.8", 0, 1.0, texts=right))

    def gain(runs):
        rows = differences(runs, "scitldr", plan.how.beam, PAIRS, False, "cpu")
        assert is_complete(rows, runs)
        assert not is_complete(rows[1:1], runs)
        return next(row for row in rows if row.metric == "rouge_1_minus_mle")

    first = gain(runs)  # of the first seed, which both have
    assert (first.value, first.low, first.high) == pytest.approx((50, 0, 100))
    assert (first.sd, first.n, first.strength) == (None, 1, 0.8)
    both = gain([*runs, store(plan, tmp_path, "sg=0.8", 1, 1.0, texts=wrong)])
    assert (both.value, both.sd, both.n) == (pytest.approx(25), pytest.approx(np.std([50, 0], ddof=1)), 2)


# ---- data and scales -------------------------------------------------------------------------------------------------


def news_folder(folder, train=8, test=2):
    folder.mkdir(parents=True, exist_ok=True)
    for name, first, count in (("validation-8", 0, train), ("test-2", 100, test)):
        rows = [{"id": str(first + i), "article": f"A {i}.", "highlights": "one\ntwo"} for i in range(count)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_news_are_split_and_the_test_file_is_the_test_set(tmp_path):
    from scalegrad.tasks.summarization.corpora import load_split

    data = split_news(news_folder(tmp_path / "news"), tmp_path / "data", validation=3)
    splits = [[pair.id for pair in load_split(data, split)] for split in ("train", "validation", "test")]
    assert splits == [["0", "1", "2", "3", "4"], ["5", "6", "7"], ["100", "101"]]
    assert load_split(data, "test")[0].references == ("one\ntwo",)
    with pytest.raises(ValueError, match="8 pairs to train on, and 100 of them are to choose by"):
        split_news(tmp_path / "news", tmp_path / "data")


@pytest.mark.parametrize("corpus", PAPER_CORPORA)
def test_the_papers_scale_has_the_papers_settings(corpus):
    """Table 15 and the sizes of the corpora, field by field."""
    settings = SETTINGS[PAPER_CORPORA[corpus]]
    plan = paper_plan(Setup("paper", "out"), corpus, corpus)
    (task,) = plan.tasks
    assert (task.model, task.data, task.limit, plan.limit) == ("google-bert/bert-base-uncased", corpus, None, None)
    assert PAPER_SIZES[corpus] == settings["sizes"]
    assert plan.objectives == ("mle", f"ul={settings['ul']['alpha']}", f"sg={settings['sg']['gamma']}")
    for objective, name in zip(plan.objectives, ("mle", "ul", "sg"), strict=True):
        assert task.recipe.encoder.lr == settings[name]["lr_bert"]
        assert task.recipe.decoder.lr == settings[name]["lr_decoder"]
        assert task.recipe.tokens == settings[name]["batch"]
        assert plan.betas[objective] == settings[name]["beta"]
        assert plan.how.beams == settings[name]["beam"]


class FirstStep(Exception):
    pass


def test_the_papers_scale_down_to_its_first_steps(tmp_path):
    """With a tiny BERT and a few pairs in their places: stage 1 is the first job; then a step of writing."""
    from scalegrad.training import Reporter

    bert = save_tiny_bert(tmp_path / "bert", positions=128)
    data = tmp_path / "cnn"
    data.mkdir()
    for split in ("train", "validation", "test"):
        row = json.dumps({"article": ["the cat sat on the mat .", "the dog ran ."], "highlights": "a cat sat"})
        (data / f"{split}.jsonl").write_text(f"{row}\n" * 6)
    setup, seen = Setup("paper", tmp_path, model=str(bert), data={"cnn_dailymail": str(data)}), []
    assert [job.name for job in jobs(setup)] == ["cnn-dm/selector-seed-0"]
    (plan,) = plans(setup, tmp_path)
    writing = replace(plan.tasks[0], recipe=replace(plan.tasks[0].recipe, selector=None))

    def stop(what, done, total):
        seen.append((what.split(" · ")[0], done, total))
        raise FirstStep

    with pytest.raises(FirstStep):
        train(writing, ["sg=0.8"], tmp_path / "second", callbacks=lambda s: [Reporter(stop, s)])
    assert seen == [("sg=0.8", 1, 200_000)]


def test_only_done_trains_nothing(tmp_path):
    """What a stopped machine left: nothing at all, MLE with one seed and SG; then without MLE."""
    here = Setup("gpu", tmp_path, only_done=True)
    with pytest.raises(NotGiven, match="no summaries were written yet"):
        summarization(here)
    assert not (tmp_path / "runs").exists()
    (plan,) = plans(here, tmp_path)
    folder = tmp_path / "runs" / "summarization" / "scitldr"
    store(plan, folder, "sg=0.2", 0, 50.0)
    with pytest.raises(NotGiven, match="the MLE model has no summaries yet"):
        summarization(here)
    store(plan, folder, "mle", 0, 30.0)
    assert prepare(find(["summarization"]), here) == ({}, {})
    rows = {system.label: system for system in summarization(here).tables[0].comparison.systems}
    assert {label: row.figures["rouge_1"] for label, row in rows.items() if row.kind == "trained"} == {
        "MLE": 30.0, "SG γ=0.2": 50.0,
    }  # fmt: skip


def test_a_model_that_is_no_bert_and_nyt50_that_is_not_there_are_said(setup, tmp_path):
    from transformers import GPT2Config

    GPT2Config(n_layer=1).save_pretrained(tmp_path / "gpt2")
    notes = summarization(replace(setup, model=str(tmp_path / "gpt2"))).notes
    assert notes[2] == f"{tmp_path / 'gpt2'} is no BERT, so BertSum began with the scale's own encoder."
    (plan,) = plans(Setup("paper", tmp_path, data={"cnn_dailymail": "x"}), tmp_path)
    both = plans(Setup("paper", tmp_path, data={"cnn_dailymail": "x", "nyt50": "y"}), tmp_path)
    assert (plan.corpus, [one.corpus for one in both]) == ("cnn/dm", ["cnn/dm", "nyt50"])
