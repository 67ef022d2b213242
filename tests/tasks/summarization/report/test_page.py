"""The page of summaries: what it shows, in which order, and that a stranger's text stays text."""

import io
import re

import pytest
from rich.console import Console

from scalegrad.runs import Run, samples_name
from scalegrad.tasks.summarization.report import load_sheet, page, print_sheet, write_page


def make_run(folder, objective, text, corpus="news", beta=1.5, scores=None):
    run = Run.create(folder, {"task": "summarization", "objective": objective})
    figures = {"rouge_1": 20.5, "rep_1": 0.1, "words": 7.0, "n_texts": 2, "novelty_2": None}
    bounds = {"rouge_1": [19.0, 22.0], "rep_1": [0.05, 0.2], "words": [6.0, 8.0]}
    evaluation = {
        "completion": {"beam": figures, "top_p=0.3": {**figures, "rouge_1": 15.0}},
        "intervals": {"beam": bounds, "top_p=0.3": bounds, "human": {"words": [1.0, 2.0]}},
        "human": {"references": {"words": 1.5}},
        "length_normalisation": {"beta": beta, "rule": "highest", **({"validation_scores": scores} if scores else {})},
        "checkpoint_rule": "least NLL",
        "notes": ["3 of 9 articles are cut."],
    }
    run.save("evaluation", {corpus: evaluation})
    article = {"prefix": "Once <b>upon</b> a time. " * 20, "references": ["ref one", "ref two"]}
    samples = [{"id": str(number), **article, "continuation": f"{text} {number}"} for number in range(2)]
    run.save(f"samples/{samples_name(corpus, 'beam')}", samples)
    return run


@pytest.fixture
def runs(tmp_path):
    said = "and so it goes on and so it goes on"
    return [make_run(tmp_path / "mle", "mle", said), make_run(tmp_path / "sg", "sg=0.8", "<script>bad</script>")]


def test_sheet_rows_and_articles(runs):
    sheet = load_sheet(runs, "news")
    kinds = [(row.label, row.kind) for row in sheet.rows]
    decoded = [("MLE, top_p=0.3", "decoded"), ("SG γ=0.8, top_p=0.3", "decoded")]
    assert kinds == [("MLE", "trained"), ("SG γ=0.8", "trained"), *decoded, ("Reference", "human")]
    assert sheet.rows[0].figures["rouge_1"] == (20.5, 19.0, 22.0)
    assert sheet.columns == ["rouge_1", "rep_1", "words"]
    assert sheet.articles[1].summaries == {
        "MLE": "and so it goes on and so it goes on 1",
        "SG γ=0.8": "<script>bad</script> 1",
    }
    assert sheet.notes == ["3 of 9 articles are cut."]


def test_page_shows_source_reference_and_each_objective(runs, tmp_path):
    html = page(load_sheet(runs, "news"))
    assert "<script>" not in html
    assert "Once <b>" not in html
    assert "&lt;script&gt;bad&lt;/script&gt; 0" in html
    assert html.count("<mark>so it goes on</mark>") + html.count("<mark>and so it goes on</mark>") == 2
    shown = re.findall(r'<div class="panel text (\w+)"><strong>([^<]*)', html)
    assert shown == [("human", "Reference"), ("mle", "MLE"), ("sg", "SG γ=0.8")] * 2
    assert "19.0–22.0" in html
    assert "β 1.5, highest" in html
    path = write_page(load_sheet(runs, "news"), tmp_path / "report.html", articles=1)
    assert "1 of 2 articles" in path.read_text()


def test_terminal_table_wide_and_narrow(runs):
    for width in (200, 60):
        console = Console(width=width, record=True, file=io.StringIO())
        print_sheet(load_sheet(runs, "news"), console)
        text = console.export_text()
        assert "20.5" in text
        assert "19.0–22.0" in text
        assert "• 3 of 9 articles are cut." in text


def test_of_several_strengths_it_says_which_the_validation_set_chooses(tmp_path):
    found = {"mle": [{"0.0": 30.0}], "sg=0.5": [{"0.0": 21.0, "1.0": 23.0}, {"0.0": 20.0}], "sg=0.2": [{"0.0": 21.4}]}
    runs = [
        make_run(tmp_path / str(seed) / name, name, "x", scores=scores)
        for name, seeds in found.items()
        for seed, scores in enumerate(seeds)
    ]
    runs.append(make_run(tmp_path / "ul", "ul=1.0", "x"))  # its β was given: nothing to choose by
    *_, said = load_sheet(runs, "news").notes
    assert said == "The validation set chooses SG γ=0.5: mean ROUGE 21.5 there; SG γ=0.2 21.4."
    assert len(load_sheet(runs, "news").notes) == 2


def test_runs_of_one_objective_are_told_apart(tmp_path):
    runs = [make_run(tmp_path / name / "mle", "mle", "x") for name in ("one", "two")]
    assert [row.label for row in load_sheet(runs, "news").rows][:2] == ["MLE (one)", "MLE (two)"]


def test_a_run_that_was_not_evaluated(runs):
    with pytest.raises(ValueError, match="was not evaluated on 'xsum'; it was on news"):
        load_sheet(runs, "xsum")
