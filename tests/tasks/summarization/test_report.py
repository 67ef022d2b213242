"""Summarisers side by side: systems, the strength that the validation set chooses, articles on the page."""

import io
import re

import pytest
from rich.console import Console

from scalegrad.objectives import parse
from scalegrad.results.comparison import page
from scalegrad.results.comparison.terminal import print_comparison
from scalegrad.runs import Run, rows_of, run_name, samples_name
from scalegrad.tasks.summarization.report import compare_summaries

BEAM = "beam=5,block_words=3"


def make_run(folder, objective, text, beta=1.5, score=None, seed=0):
    run = Run.create(folder / run_name(objective, seed), {"task": "summarization", "objective": objective})
    run.finish({})
    about = {"task": "summarization", "corpus": "news", "split": "test"}
    system = {"objective": parse(objective).name, "strength": parse(objective).amount, "seed": seed}
    figures = {"rouge_1": {"value": 20.5, "low": 19.0, "high": 22.0, "n": 2}, "rep_1": {"value": 0.1, "n": 2}}
    rows = rows_of({**figures, "beta": beta, "words": {"value": 7.0, "n": 2}}, decoding=BEAM, **about, **system)
    rows += rows_of({"rouge_1": 15.0}, decoding="top_p=0.3", **about, **system)
    if score is not None:
        rows += rows_of({"mean_rouge": score}, decoding=BEAM, **{**about, "split": "validation"}, **system)
    run.add(rows, {"corpus": "news", "split": "test", "decoding": BEAM}, notes=["3 of 9 articles are cut."])
    run.add(rows_of({"words": 1.5}, objective="human", **about))
    for name, own in ((BEAM, text), ("human", "ref")):
        article = {"prefix": "", "references": ["ref 0", "ref two"]}
        samples = [article | {"prefix": f"<b>{at}</b> a time. " * 20, "continuation": f"{own} {at}"} for at in range(2)]
        run.save(f"samples/{samples_name('news', 'test', name)}", samples)
    return run


@pytest.fixture
def runs(tmp_path):
    said = "and so it goes on and so it goes on"
    return [make_run(tmp_path, "mle", said), make_run(tmp_path, "sg=0.8", "<script>bad</script>")]


def test_systems(runs):
    comparison = compare_summaries(runs, "news")
    assert [(system.label, system.kind) for system in comparison.systems] == [
        ("MLE", "trained"), ("SG γ=0.8", "trained"), ("MLE, top_p=0.3", "decoded"),
        ("SG γ=0.8, top_p=0.3", "decoded"), ("Human", "human"),
    ]  # fmt: skip
    assert comparison.systems[0].figures["rouge_1"] == 20.5
    assert comparison.systems[0].intervals["rouge_1"] == (19.0, 22.0)
    assert comparison.notes == ["3 of 9 articles are cut."]


def test_page_shows_article_references_and_each_objective(runs):
    html = page(compare_summaries(runs, "news"))
    assert "<script>" not in html
    assert "<b>0" not in html
    assert "&lt;script&gt;bad&lt;/script&gt; 0" in html
    assert html.count("<mark>so it goes on</mark>") + html.count("<mark>and so it goes on</mark>") == 2
    assert html.count("<blockquote>ref two</blockquote>") == 2  # every reference, with each of two articles
    assert len(re.findall(r'<details class="prefix">', html)) == 2
    assert "19.00–22.00" in html


def test_terminal_table_wide_and_narrow(runs):
    for width in (200, 60):
        console = Console(width=width, record=True, file=io.StringIO())
        print_comparison(compare_summaries(runs, "news"), console)
        text = console.export_text()
        assert "20.50" in text
        assert "19.00–22.00" in text
        assert "• 3 of 9 articles are cut." in text


def test_seeds_that_chose_different_betas_are_one_system(tmp_path):
    runs = [make_run(tmp_path, "mle", "x", beta=beta, seed=seed) for seed, beta in enumerate((0.5, 1.5))]
    first, *_ = compare_summaries(runs, "news").systems
    assert (first.label, first.runs, first.figures["beta"]) == ("MLE", 2, 1.0)


def test_of_several_strengths_it_says_which_the_validation_set_chooses(tmp_path):
    """γ = .5 has 23 and 20 with two seeds, γ = .2 has 21.4; MLE has one strength, and β of UL was set by hand."""
    scores = [("mle", 0, 30.0), ("sg=0.5", 0, 23.0), ("sg=0.5", 1, 20.0), ("sg=0.2", 0, 21.4), ("ul=1.0", 0, None)]
    runs = [make_run(tmp_path, objective, "x", score=score, seed=seed) for objective, seed, score in scores]
    comparison = compare_summaries(runs, "news")
    assert [system.label for system in comparison.systems if system.chosen] == ["SG γ=0.5"]
    _, note = comparison.notes
    assert re.findall(r"[\d.]+\d", note.split(":", 1)[1]) == ["21.50", "0.2", "21.40"]


def test_a_run_that_was_not_evaluated(runs):
    with pytest.raises(ValueError, match="no run was scored on 'xsum:test'"):
        compare_summaries(runs, "xsum")
