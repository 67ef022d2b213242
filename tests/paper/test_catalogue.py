"""The catalogue: complete against the paper, jobs run once, and what showing one experiment leaves behind."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from paper import catalogue
from paper.catalogue import DATA, EXPERIMENTS, SMOKE, TAKES, find, prepare, run_all, show
from paper.outcome import Experiment, NotGiven, Outcome, Setup, Shown
from paper.printed import SETTINGS, TABLES
from scalegrad.results.comparison import Comparison, System
from scalegrad.runs import Job, Row, read_rows

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
    assert {f"table {number}" for number in TABLES} <= set(shown)
    assert list(SETTINGS) == [
        "open-ended",
        "cnn/dm",
        "nyt50",
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
    def outcome(setup):
        mle = System(objective="mle", figures={"ppl": 13.24})
        rows = [Row("ppl", 13.24, objective="mle")]
        return Outcome([Shown("Main", Comparison([mle]))], [], ["On paper."], {"model": setup.model or "none"}, rows)

    return Experiment("wikitext", "Words", ("table 1",), outcome)


def test_what_is_left_behind(experiment, tmp_path):
    part = show(experiment, Setup("smoke", tmp_path, "m"))
    about = json.loads((tmp_path / "wikitext" / "environment.json").read_text())
    assert about["notes"] == [SMOKE, "On paper."] == part.outcome.notes
    assert about["made"]["model"] == "m"
    assert [row.value for row in read_rows(tmp_path / "wikitext" / "results.jsonl")] == [13.24]
    assert "13.24" in (tmp_path / "report.html").read_text()
    files = {"environment.json", "part.html", "report.html", "results.jsonl", "wikitext"}
    assert {path.name for path in tmp_path.rglob("*")} == files


def test_the_page_holds_what_was_done_before(experiment, tmp_path):
    assert show(experiment, Setup("gpu", tmp_path)).outcome.notes == ["On paper."]
    show(find(["gradients"])[0], Setup("gpu", tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert re.findall(r'<section class="part" id="([^"]+)">', page) == ["wikitext", "gradients"]
    assert SMOKE not in page


def test_a_failure_leaves_nothing(tmp_path):
    def fails(setup):
        raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"):
        show(Experiment("ptb", "Fails", (), fails), Setup("smoke", tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    asked = []
    with pytest.raises(NotADirectoryError, match="file is a file"):
        prepare([Experiment("ptb", "x", (), asked.append, asked.append)], Setup("smoke", tmp_path / "file"))
    assert asked == []


# ---- jobs ------------------------------------------------------------------------------------------------------------


def work(path, fails, progress=None):
    """A job that counts how often it is run."""
    with Path(path).open("a") as file:
        file.write("x")
    if fails:
        raise ValueError("no such luck")


def stages(folder, setup):
    """A job that fails, one that does not, and one that waits for it."""
    names = ["bad", "good", *(["later"] if (folder / "good").exists() else [])]
    return [Job(name, work, (folder / name, name == "bad"), partial(_is_good, folder / name)) for name in names]


def _is_good(path):
    return path.exists() and path.name != "bad"


def test_every_job_is_run_once_and_failures_are_reported_at_the_end(experiment, tmp_path, monkeypatch, capsys):
    """Two experiments need the same jobs; a job that waits for another comes after it."""
    first = Experiment("wikitext", "Words", (), experiment.show, jobs=partial(stages, tmp_path))
    second = Experiment("lengths", "Lengths", (), experiment.show, jobs=partial(stages, tmp_path))
    monkeypatch.setattr(catalogue, "EXPERIMENTS", (first, second))
    assert run_all(["wikitext", "lengths"], Setup("gpu", tmp_path / "out")) == 1
    assert {name: (tmp_path / name).read_text() for name in ("bad", "good", "later")} == dict.fromkeys(
        ("bad", "good", "later"), "x"
    )
    printed = capsys.readouterr()
    assert printed.out.count("13.24") == 2  # what could be shown is shown
    assert printed.err.splitlines()[-1] == "paper: bad: no such luck"


def test_what_is_not_given_is_said_at_once_and_left_out(experiment, tmp_path, monkeypatch, capsys):
    def missing(setup):
        raise NotGiven("bring it (--ptb PATH)")

    without = Experiment("ptb", "Bank", (), experiment.show, missing)
    monkeypatch.setattr(catalogue, "EXPERIMENTS", (experiment, without))
    setup = Setup("gpu", tmp_path)
    assert run_all(["all"], setup) == 0
    said = capsys.readouterr().err.splitlines()
    assert (said[0], said[-1]) == (
        "paper: ptb is left out: bring it (--ptb PATH)",
        "left out: ptb: bring it (--ptb PATH)",
    )
    assert run_all(["wikitext", "ptb"], setup) == 2  # it was asked for by name
    with pytest.raises(NotGiven, match="bring it"):
        run_all(["ptb"], setup)
    assert not (tmp_path / "ptb").exists()


def test_what_experiments_share_is_trained_and_measured_in_one_queue(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(catalogue, "run_jobs", lambda jobs, *rest, **others: asked.append(jobs))
    (tmp_path / "base-small").mkdir()
    (tmp_path / "base-small" / "config.json").write_text("{}")  # the model is there
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text("".join(json.dumps({"text": f"Film {i} is well told."}) + "\n" for i in range(500)))
    names = ["wikitext", "ptb", "imdb", "decoding", "lengths", "sensitivity", "human-study", "examples"]
    refused, _ = prepare(find(names), Setup("gpu", tmp_path, data={"imdb": str(reviews)}))
    assert list(refused) == ["ptb"]
    (jobs,) = asked
    measured = {job.name: [type(item).__name__ for item in job.arguments[0].measured] for job in jobs}
    assert len(measured) == len(jobs) == 3 * 3 + 3 * 4 + 10
    assert list(measured)[:2] == ["base-small/mle-seed-0", "base-small/ul-1.0-seed-0"]
    # The test text, the validation text and the penalties of `wikitext`; `imdb`; `decoding`'s predictions and texts;
    # `lengths`; `sensitivity`'s predictions; `examples`. The study of people needs what `wikitext` wrote.
    assert measured["base-small/mle-seed-0"] == [*["Scoring"] * 6, "Lengths", "Scoring", "Continued"]
    assert measured["base-small/sg-0.5-seed-2"] == ["Scoring"]
    assert prepare(find(["gradients"]), Setup("gpu", tmp_path)) == ({}, {})
    assert prepare(find(names), Setup("gpu", tmp_path, only_done=True)) == ({}, {})
    assert len(asked) == 1
    refused, _ = prepare(find(names), Setup("gpu", tmp_path, data={"imdb": str(tmp_path / "none.jsonl")}))
    assert set(refused) == {"ptb", "imdb", "examples"}  # the others' queue goes on
    assert len(asked[1]) == 3 * 3 + 3 * 4 + 10


def test_gradients_and_the_novel_set_have_the_papers_numbers(tmp_path):
    gradients, novel = (show(one, Setup("smoke", tmp_path)).outcome for one in find(["gradients", "novel-set"]))
    rows = {row.label: row.figures for row in gradients.tables[0].comparison.systems}
    for p in (0.1, 0.3, 0.5, 0.7, 0.9):  # equation 6, γ = .2, two tokens of which one is novel
        scaled = 0.2 * p / (0.2 * p + 1 - p), p / (p + 0.2 * (1 - p))  # p̃ of a novel token, of one that is not
        assert rows["SG T-N: target, novel"][f"p = {p}"] == pytest.approx(1 - scaled[0])
        assert rows["SG T-NN: target, not novel"][f"p = {p}"] == pytest.approx(1 - scaled[1])
        assert rows["SG NT-N: other, novel"][f"p = {p}"] == pytest.approx(scaled[0])
        assert rows["SG NT-NN: other, not novel"][f"p = {p}"] == pytest.approx(scaled[1])
        assert rows["MLE T: target"][f"p = {p}"] == pytest.approx(1 - p)
    assert SMOKE not in gradients.notes
    sizes = [row.figures["n_novel"] for row in novel.tables[0].comparison.systems]
    assert sizes == [50257, 50256, 50255, 50254, 50253, 50252]
    looping = novel.tables[1].comparison.systems
    assert [row.figures["n_seen"] for row in looping] == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 8]
    assert [row.label for row in looping if "said before" in row.label][:2] == [
        "8. The (said before)",
        "9. horses (said before)",
    ]
