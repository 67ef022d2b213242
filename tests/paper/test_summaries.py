"""Summarisation beside the paper: stored results without weights, the paper's settings, its scale's first steps."""

import json
from dataclasses import replace

import pytest

from paper import NotGiven, Setup
from paper.printed import SETTINGS
from paper.summaries import summarization, summarization_decoding
from paper.summary_plans import PAPER_CORPORA, paper_plan, plans, split_news
from scalegrad.data.embedded import scitldr
from scalegrad.tasks.summarization.corpora import PAPER_SIZES
from scalegrad.tasks.summarization.training import train
from tests.tiny_bert import save_tiny_bert

TEST = scitldr("test")[:2]
RIGHT = [pair.references[0] for pair in TEST]  # ROUGE 100
WRONG = ["zebra zebra zebra zebra", "xylophone quartz"]  # ROUGE 0; Rep-1 3/4 of the first, the second is too short


def stored(objective, seed, beam, **others):
    scores = {"0.0": 10.0, "1.0": 30.0 if objective in ("ul=1.0", "sg=0.2") else 20.0}
    evaluation = {
        "length_normalisation": {"beta": 1.0, "validation_scores": scores},
        "notes": ["3 of 618 articles are longer than 512 tokens and cut there."],
    }
    return {
        "objective": objective, "seed": seed, "evaluation": evaluation, "summaries": {"beam": beam, **others},
        "trained": {"steps": 9, "selected_step": 8, "validation_ppl": 30.0, "seconds": 5.0}, "model_parameters": 7,
    }  # fmt: skip


def experiment():
    """A grid with the first seed, MLE and the chosen α and γ with two more: SG is right, UL half right, MLE wrong."""
    half, sampled = [RIGHT[0], WRONG[1]], dict.fromkeys(("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100"), WRONG)
    results = [stored("mle", seed, RIGHT if seed == 2 else WRONG, **sampled) for seed in range(3)]
    results += [stored(f"ul={alpha}", 0, half) for alpha in (0.5, 1.0, 1.5)]
    results += [stored(f"sg={gamma}", 0, RIGHT) for gamma in (0.2, 0.5, 0.8)]
    results += [
        stored(one, seed, RIGHT if one == "sg=0.2" else half) for one in ("ul=1.0", "sg=0.2") for seed in (1, 2)
    ]
    about = {"hardware": "a GPU", "versions": {"torch": "2.11"}, "started": "today"}
    return {
        "experiment": "abstracts", "settings": {"choose": 60, "limit": None}, "environment": about, "seconds": 12.0,
        "test": [pair.id for pair in TEST], "chosen": {}, "results": results, "failed": [],
    }  # fmt: skip


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    folder = out / "runs" / "summarization"
    folder.mkdir(parents=True)
    (folder / "abstracts.json").write_text(json.dumps(experiment()))
    return Setup("gpu", out)


def test_stored_results_become_tables_without_weights(setup):
    found = summarization(setup)
    ((title, table),) = [(shown.title, shown.comparison) for shown in found.tables]
    assert title == "BertSum on the abstracts of SciTLDR, 2 test texts"
    rows = {system.label: system for system in table.systems}
    assert list(rows)[:8] == [
        "MLE", "UL α=0.5", "UL α=1.0", "UL α=1.5", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2", "Reference",
    ]  # fmt: skip
    mle, ul, sg = rows["MLE"], rows["UL α=1.0"], rows["SG γ=0.2"]
    assert mle.figures["rouge_1"] == pytest.approx(100 / 3)  # 0, 0 and 100 by seed
    assert mle.deviations["rouge_1"] == pytest.approx(100 / 3**0.5)
    assert (mle.runs, ul.runs, sg.runs, rows["UL α=0.5"].runs) == (3, 3, 3, 1)
    assert ul.figures["rouge_1"] == pytest.approx(50)
    assert ul.intervals["rouge_1"] == pytest.approx((0, 100))
    assert (sg.figures["rouge_1"], sg.intervals["rouge_1"]) == (pytest.approx(100), pytest.approx((100, 100)))
    assert rows["SG γ=0.8, in the paper"].figures["rouge_1"] == 42.19
    assert rows["SG γ=0.8, in the paper (NYT50)"].figures["rouge_1"] == 49.29
    assert "compare the order and the gaps, not the values" in found.said[0]
    assert found.made["abstracts"]["runs"]["sg=0.2 seed 2"] == "step 8 of 9, validation perplexity 30.00, 5 s; β=1"
    assert [plot.name for plot in found.plots] == ["abstracts-gains"]
    assert not (setup.runs / "summarization" / "abstracts").exists()  # nothing was trained


def test_sampling_against_the_beam(setup):
    found = summarization_decoding(setup)
    table = found.tables[0].comparison
    here = {system.label: system.figures["rouge_1"] for system in table.of_kind("trained", "decoded")}
    assert here == pytest.approx({
        "MLE top_p=0.3": 0, "MLE top_p=0.9": 0, "MLE top_k=40": 0, "MLE top_k=100": 0, "MLE beam=5": 100 / 3,
    })  # fmt: skip
    rows = {system.label: system.figures for system in table.systems}
    assert rows["MLE top_p=0.3"]["rep_1"] == pytest.approx(3 / 4)
    assert rows["MLE beam=5, in the paper"] == {"rouge_1": 48.73, "moverscore_1": 28.73}
    assert [plot.name for plot in found.plots] == ["abstracts-decoding"]


def news_folder(folder, train=8, test=2):
    folder.mkdir(parents=True, exist_ok=True)
    for name, first, count in (("validation-8", 0, train), ("test-2", 100, test)):
        rows = [{"id": str(first + i), "article": f"A {i}.", "highlights": "one\ntwo"} for i in range(count)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_news_are_split_and_the_test_file_is_the_test_set(tmp_path):
    from scalegrad.tasks.summarization.corpora import load_split

    data = split_news(news_folder(tmp_path / "news"), tmp_path / "data", validation=3)
    found = [[pair.id for pair in load_split(data, split)] for split in ("train", "validation", "test")]
    assert found == [["0", "1", "2", "3", "4"], ["5", "6", "7"], ["100", "101"]]
    assert load_split(data, "test")[0].references == ("one\ntwo",)
    with pytest.raises(ValueError, match="8 pairs to train on, and 100 of them are to choose by"):
        split_news(tmp_path / "news", tmp_path / "data")


def test_stored_news_need_no_model(tmp_path):
    """Two articles, whose summary is "one two": MLE says it once of two, SG always."""
    folder = tmp_path / "runs" / "summarization"
    folder.mkdir(parents=True)
    (folder / "abstracts.json").write_text(json.dumps(experiment()))
    said = {"mle": ["one two", "xx yy"], "sg=0.2": ["one two"] * 2}
    results = [stored(one, 0, said.get(one, ["xx yy"] * 2)) for one in ("mle", "ul=0.5", "sg=0.8", "sg=0.5", "sg=0.2")]
    settings = {"model": "elsewhere.gguf", "choose": 50, "limit": None}
    found = experiment() | {"experiment": "news", "settings": settings, "test": ["100", "101"], "results": results}
    (folder / "news.json").write_text(json.dumps(found))
    data = {"news": str(news_folder(tmp_path / "news", train=102))}
    outcome = summarization(Setup("gpu", tmp_path, data=data))
    assert [shown.title for shown in outcome.tables][1] == "A causal LM on CNN/DM news, 2 test texts"
    rows = {system.label: system.figures for system in outcome.tables[1].comparison.systems}
    assert (rows["MLE"]["rouge_1"], rows["SG γ=0.2"]["rouge_1"]) == pytest.approx((50, 100))


@pytest.mark.parametrize("corpus", PAPER_CORPORA)
def test_the_papers_scale_has_the_papers_settings(corpus):
    """Table 15 and the sizes of the corpora, field by field."""
    settings = SETTINGS[PAPER_CORPORA[corpus]]
    plan = paper_plan(Setup("paper", "out"), corpus, corpus)
    (task,) = plan.tasks
    assert (task.model, task.data, task.limit, plan.limit) == ("google-bert/bert-base-uncased", corpus, None, None)
    assert PAPER_SIZES[corpus] == settings["sizes"]
    assert plan.objectives == ("mle", f"ul={settings['UL']['alpha']}", f"sg={settings['SG']['gamma']}")
    for objective, row in zip(plan.objectives, ("MLE", "UL", "SG"), strict=True):
        assert task.recipe.encoder.lr == settings[row]["lr_bert"]
        assert task.recipe.decoder.lr == settings[row]["lr_decoder"]
        assert task.recipe.tokens == settings[row]["batch"]
        assert plan.betas[objective] == settings[row]["beta"]
        assert plan.how.beams == settings[row]["beam"]


class FirstStep(Exception):
    pass


def stop(seen):
    def progress(what, done, total):
        seen.append((what.split(" · ")[0], done, total))
        raise FirstStep

    return progress


def test_the_papers_scale_down_to_its_first_steps(tmp_path):
    """With a tiny BERT and a few pairs in their places: a step of selection, and one of writing."""
    bert = save_tiny_bert(tmp_path / "bert", positions=128)
    data = tmp_path / "cnn"
    data.mkdir()
    for split in ("train", "validation", "test"):
        row = json.dumps({"article": ["the cat sat on the mat .", "the dog ran ."], "highlights": "a cat sat"})
        (data / f"{split}.jsonl").write_text(f"{row}\n" * 6)
    seen = []
    setup = Setup("paper", tmp_path, model=str(bert), data={"cnn_dailymail": str(data)}, progress=stop(seen))
    with pytest.raises(FirstStep):
        summarization(setup)
    (plan,) = plans(setup, tmp_path)
    writing = replace(plan.tasks[0], recipe=replace(plan.tasks[0].recipe, selector=None))
    from scalegrad.training import training_progress

    with pytest.raises(FirstStep):
        train(writing, ["sg=0.8"], tmp_path / "second", callbacks=lambda s: [training_progress(stop(seen), s)])
    assert seen == [("training selector, seed 0", 1, 50_000), ("sg=0.8", 1, 200_000)]


def test_only_done_trains_nothing(setup, tmp_path):
    """What a stopped machine left: MLE with one seed and SG; then without MLE, and nothing at all."""
    folder = tmp_path / "runs" / "summarization"
    here = Setup("gpu", tmp_path, only_done=True)
    with pytest.raises(NotGiven, match="no summaries were written yet"):
        summarization(here)
    assert not folder.exists()
    folder.mkdir(parents=True)
    whole = experiment()
    few = [one for one in whole["results"] if one["seed"] == 0 and one["objective"] in ("mle", "sg=0.2")]
    (folder / "abstracts.json").write_text(json.dumps(whole | {"results": few}))
    rows = {system.label: system for system in summarization(here).tables[0].comparison.systems}
    assert [label for label, row in rows.items() if row.kind == "trained"] == ["MLE", "SG γ=0.2"]
    assert (rows["MLE"].figures["rouge_1"], rows["SG γ=0.2"].figures["rouge_1"]) == (0.0, pytest.approx(100))
    (folder / "abstracts.json").write_text(json.dumps(whole | {"results": few[1:]}))
    with pytest.raises(NotGiven, match="the MLE model has no summaries yet"):
        summarization(here)
    assert not (folder / "abstracts").exists()


def test_a_model_that_is_no_bert_and_nyt50_that_is_not_there_are_said(setup, tmp_path):
    from transformers import GPT2Config

    GPT2Config(n_layer=1).save_pretrained(tmp_path / "gpt2")
    said = summarization(replace(setup, model=str(tmp_path / "gpt2"))).said
    assert said[2] == f"{tmp_path / 'gpt2'} is no BERT, so BertSum began with the scale's own encoder."
    (plan,) = plans(Setup("paper", tmp_path, data={"cnn_dailymail": "x"}), tmp_path)
    both = plans(Setup("paper", tmp_path, data={"cnn_dailymail": "x", "nyt50": "y"}), tmp_path)
    assert (plan.name, [one.name for one in both]) == ("cnn_dailymail", ["cnn_dailymail", "nyt50"])
