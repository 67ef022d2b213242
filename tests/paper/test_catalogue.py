"""The catalogue: complete against the paper, and what doing one experiment leaves behind."""

import json
import re

import pytest

from paper import Experiment, Outcome, Setup, Shown, catalogue
from paper.catalogue import DATA, EXPERIMENTS, SMOKE, TAKES, find, reproduce, train
from paper.printed import SETTINGS, TABLES
from scalegrad.results.comparison import Comparison, System

# In the order of the paper. Tables 13 to 16 are data sizes and hyper-parameters, figure 5 the study's page.
TABLES_OF_THE_PAPER = range(1, 29)
FIGURES_OF_THE_PAPER = range(1, 7)
NAMES = (
    "wikitext ptb imdb decoding lengths sensitivity summarization summarization-decoding captioning "
    "captioning-degeneration captioning-decoding human-rows gradients novel-set human-study examples"
)


def test_every_table_and_figure_of_the_paper_has_its_experiment():
    shown = [name for experiment in EXPERIMENTS for name in experiment.shows]
    tables = [f"table {number}" for number in TABLES_OF_THE_PAPER]
    figures = [f"figure {number}" for number in FIGURES_OF_THE_PAPER]
    assert sorted(shown) == sorted(tables + figures)  # each once, and none that the paper does not have
    assert {f"table {table.number}" for table in TABLES.values()} <= set(shown)
    assert list(SETTINGS) == [
        "open-ended",
        "summarization cnn/dm",
        "summarization nyt50",
        "captioning",
    ]  # tables 13 to 16


def test_the_catalogue_is_the_one_that_was_asked_for():
    assert " ".join(experiment.name for experiment in EXPERIMENTS) == NAMES
    assert [name for name in TAKES if not all(TAKES[name])] == []
    assert all(re.fullmatch(r"[a-z0-9_-]+", name) for name in DATA)


def test_find_gives_each_once_in_the_order_of_the_catalogue():
    assert [e.name for e in find(["examples", "wikitext", "examples"])] == ["wikitext", "examples"]
    assert find(["all"]) == list(EXPERIMENTS)
    with pytest.raises(ValueError, match=r"no experiment 'wikitex'; there are wikitext, ptb, .*examples, or all"):
        find(["wikitext", "wikitex"])


@pytest.fixture
def experiment():
    def run(setup):
        rows = [System("MLE", {"ppl": 13.24}, family="mle"), System("MLE, in the paper", {"ppl": 13.241}, "paper")]
        return Outcome([Shown("Main", Comparison(rows))], [], ["On paper."], {"model": setup.model or "none"})

    return Experiment("wikitext", "Words", ("table 1",), run)


def test_what_is_left_behind(experiment, tmp_path):
    found = reproduce(experiment, Setup("smoke", tmp_path, "m"))
    told = json.loads((tmp_path / "wikitext" / "results.json").read_text())
    assert told["tables"][0]["rows"][0]["figures"] == {"ppl": 13.24}
    assert told["said"] == [SMOKE, "On paper."]
    assert told["made"]["model"] == "m"
    assert told["made"]["shown"]["versions"]["torch"]
    assert told["made"]["shown"]["seconds"] >= 0
    page = (tmp_path / "report.html").read_text()
    assert "13.24" in page
    assert found.said == told["said"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "report.html",
        "results.json",
        "results.md",
        "wikitext",
    ]


def test_the_page_holds_what_was_done_before(experiment, tmp_path):
    assert reproduce(experiment, Setup("gpu", tmp_path)).said == ["On paper."]
    reproduce(find(["gradients"])[0], Setup("gpu", tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert re.findall(r'<section class="part" id="([^"]+)">', page) == ["wikitext", "gradients"]
    assert SMOKE not in page


def test_a_failure_leaves_nothing(tmp_path):
    def fails(setup):
        raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"):
        reproduce(Experiment("ptb", "Fails", (), fails), Setup("smoke", tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    ran = []
    with pytest.raises(NotADirectoryError, match="file is a file"):
        reproduce(Experiment("ptb", "x", (), ran.append), Setup("smoke", tmp_path / "file"))
    assert ran == []


def test_gradients_and_the_novel_set_have_the_papers_numbers(tmp_path):
    gradients, novel = (reproduce(one, Setup("smoke", tmp_path)) for one in find(["gradients", "novel-set"]))
    rows = {row.label: row.figures for row in gradients.tables[0].comparison.systems}
    for p in (0.1, 0.3, 0.5, 0.7, 0.9):  # equation 6, γ = .2, two tokens of which one is novel
        scaled = 0.2 * p / (0.2 * p + 1 - p), p / (p + 0.2 * (1 - p))  # p̃ of a novel token, of one that is not
        assert rows["SG T-N: target, novel"][f"p = {p}"] == pytest.approx(1 - scaled[0])
        assert rows["SG T-NN: target, not novel"][f"p = {p}"] == pytest.approx(1 - scaled[1])
        assert rows["SG NT-N: other, novel"][f"p = {p}"] == pytest.approx(scaled[0])
        assert rows["SG NT-NN: other, not novel"][f"p = {p}"] == pytest.approx(scaled[1])
        assert rows["MLE T: target"][f"p = {p}"] == pytest.approx(1 - p)
    assert SMOKE not in gradients.said
    sizes = [row.figures["n_novel"] for row in novel.tables[0].comparison.systems]
    assert sizes == [50257, 50256, 50255, 50254, 50253, 50252]
    looping = novel.tables[1].comparison.systems
    assert [row.figures["n_seen"] for row in looping] == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 8]
    assert [row.label for row in looping if "said before" in row.label][:2] == [
        "8. The (said before)",
        "9. horses (said before)",
    ]


def test_what_experiments_share_is_trained_and_measured_in_one_queue(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(catalogue, "trained", lambda setup, jobs: asked.append(jobs))
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text("".join(json.dumps({"text": f"Film {i} is well told."}) + "\n" for i in range(500)))
    train(find(["all"]), Setup("gpu", tmp_path, data={"imdb": str(reviews)}))
    (jobs,) = asked
    measured = {job.name: [type(item).__name__ for item in job.measured] for job in jobs}
    assert len(measured) == len(jobs) == 3 * 3 + 3 * 4 + 10
    assert list(measured)[:3] == ["mle-seed-0", "ul-1.0-seed-0", "sg-0.2-seed-0"]
    # The test text, the validation text and the penalties of `wikitext`; `imdb`; `decoding`'s predictions and texts;
    # `lengths`; `sensitivity`'s predictions; `examples`. The study of people needs what `wikitext` wrote.
    assert measured["mle-seed-0"] == [*["Scoring"] * 6, "Lengths", "Scoring", "Continued"]
    assert measured["sg-0.5-seed-2"] == ["Scoring"]
    train(find(["gradients", "summarization"]), Setup("gpu", tmp_path))
    train(find(["all"]), Setup("gpu", tmp_path, only_done=True))
    assert len(asked) == 1


def test_a_mistake_in_one_experiment_s_data_leaves_the_queue_of_the_others(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(catalogue, "trained", lambda setup, jobs: asked.append(len(jobs)))
    train(find(["all"]), Setup("gpu", tmp_path, data={"imdb": str(tmp_path / "none.jsonl")}))
    assert asked == [3 * 3 + 3 * 4 + 10]
