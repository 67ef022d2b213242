"""The captioning tables: rows by objective and decoding, means over seeds, the paper beside them."""

from __future__ import annotations

import pytest

from scalegrad import objectives
from scalegrad.tasks.captioning.report import CaptionRun, choose_strengths, compare_captions, compare_stochastic


def run(objective, seed, cider, blocked, **more):
    def figures(value):
        return {
            "cider": value,
            "bleu": 1.0,
            "rep_1": value / 100,
            "rep_2": 0.1,
            "rep_3": None,
            "words": 60.0,
            "n_texts": 9,
        }

    rows = {
        "greedy": figures(cider),
        "3-block": figures(blocked),
        **{name: figures(value) for name, value in more.items()},
    }
    betas = {"greedy": {"0": cider - 1, "0.1": cider}, "3-block": {"0": blocked, "0.1": 0.0}}
    human = {"rep_1": 0.42, "rep_2": 0.12, "rep_3": 0.04, "words": 67.0, "n_texts": 9}
    found = {"rows": rows, "betas": betas, "human": human, "validation_ppl": 4.0}
    texts = {"greedy": {"a": "a dog.", "b": "a cat."}}
    return CaptionRun(objectives.parse(objective), seed, found, texts)


MLE = {"greedy,gamma=0.5": 12.0, "top_p=0.3": 19.0, "top_k=40": 17.0}
RUNS = [
    run("mle", 0, 10.0, 22.0, **MLE),
    run("sg=0.5", 0, 18.0, 24.0),
    run("mle", 1, 12.0, 24.0, **MLE),
    run("sg=0.5", 1, 20.0, 26.0),
]


def test_rows_of_the_tables():
    found = compare_captions(
        RUNS, "scenes", {"a": "a brown dog.", "b": "a grey cat."}, {"a": "data:image/png;base64,AA"}
    )
    here = {system.label: system.figures for system in found.systems}
    assert {label: figures.get("cider") for label, figures in here.items()} == {
        "MLE": 11.0,
        "SG γ=0.5": 19.0,
        "MLE 3-block": 23.0,
        "SG γ=0.5 3-block": 25.0,
        "MLE, decoded with γ=0.5": 12.0,
        "Human": None,
    }
    assert found.systems[0].deviations["cider"] == pytest.approx(2**0.5)
    assert here["MLE"]["validation_ppl"] == 4.0
    assert "rep_3" not in here["MLE"]  # there was none
    assert found.human.figures["rep_3"] == 0.04
    assert (found.baseline.label, found.favourite.label, found.twin.label) == (
        "MLE",
        "SG γ=0.5",
        "MLE, decoded with γ=0.5",
    )
    assert [(sample.prefix, sample.picture != "") for sample in found.baseline.samples] == [("a", True), ("b", False)]


@pytest.mark.parametrize(("corpus", "said"), [("scenes", True), ("drawn scenes", True), ("Visual Genome", False)])
def test_the_human_row_of_drawn_scenes_is_said_to_be_a_grammar(corpus, said):
    assert any("grammar" in note for note in compare_captions(RUNS, corpus).notes) == said


def test_sampling_against_blocking():
    found = compare_stochastic(RUNS, "scenes")
    assert [system.label for system in found.systems] == ["MLE top_p=0.3", "MLE top_k=40", "MLE 3-block"]
    assert compare_stochastic(RUNS[1:2], "scenes") is None


def test_strengths_are_chosen_on_validation():
    """γ = .5 has the best β at 19 on average, γ = .2 at 20; with blocking 25 against 21."""
    runs = [*RUNS, run("sg=0.2", 0, 19.0, 20.0), run("sg=0.2", 1, 21.0, 22.0)]
    assert choose_strengths(runs) == {"sg": {"greedy": "SG γ=0.2", "3-block": "SG γ=0.5"}}
    assert choose_strengths(RUNS) == {}
