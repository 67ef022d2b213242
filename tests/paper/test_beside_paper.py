"""Rows beside the paper's, and what the picture shows."""

from paper.beside_paper import beside_paper, difference_plot, paper_rows, paper_systems, with_paper_rows
from scalegrad.results.comparison import Comparison, System, compare_runs, find_runs
from tests.results.comparison.conftest import CORPUS, PROTOCOL, evaluation

MLE, UL, SG = "MLE", "UL α=0.5", "SG γ=0.5"


def table(mle, ul, sg, spread=0.0, name="cider"):
    figures = {MLE: mle, UL: ul, SG: sg}
    rows = [
        System(label, {name: value}, family=label.split()[0].lower(), deviations={name: spread} if spread else {})
        for label, value in figures.items()
    ]
    return Comparison([*rows, System("Human", {"rep_1": 0.4}, "human"), *paper_systems("captioning")])


def test_the_papers_rows_of_several_tables_are_joined():
    rows = {system.label: system for system in paper_systems("captioning", "captioning degeneration")}
    assert rows["MLE 3-block, in the paper"].figures == {"cider": 22.77, "rep_1": 0.575, "rep_2": 0.271, "rep_3": 0.094}
    assert (rows["UL α=0.5, in the paper"].family, rows["Human, in the paper"].family) == ("ul", "human")


def test_two_panels_with_their_own_scales():
    plot = beside_paper(table(10.0, 14.0, 19.0, spread=1.0), "cider", "captioning", "CIDEr")
    left, right = plot.figure.axes
    assert [bar.get_width() for bar in left.patches] == [10.0, 14.0, 19.0]
    assert [bar.get_width() for bar in right.patches] == [10.51, 14.65, 19.42]
    assert [tick.get_text() for tick in left.get_yticklabels()] == [MLE, UL, SG]
    assert [line.get_xdata().tolist() for line in left.lines] == [[9.0, 11.0], [13.0, 15.0], [18.0, 20.0]]
    assert "Lines: deviation over seeds." in plot.caption
    assert beside_paper(table(10.0, 14.0, 19.0), "rouge_1", "none", "") is None


def test_differences_with_their_intervals():
    gains = {
        UL: {"rouge_1": {"mean": 0.5, "low": -0.5, "high": 1.5}, "rep_1": {"mean": -0.1, "low": -0.2, "high": -0.05}},
        SG: {"rouge_1": {"mean": 1.0, "low": 0.5, "high": 1.5}},
    }
    plot = difference_plot(gains, ("rouge_1", "rep_1"), "gains", "against MLE")
    (axes,) = plot.figure.axes  # only what both have
    assert [line.get_xdata().tolist() for line in axes.lines[:4]] == [[-0.5, 1.5], [0.5], [0.5, 1.5], [1.0]]
    assert difference_plot({}, ("rouge_1",), "none", "") is None


def test_with_another_tokenizer_only_rep_n_of_the_paper_is_shown(make_run, tmp_path):
    make_run("mle", "mle", 0, evaluation(12.0, 0.6, protocol=PROTOCOL | {"gpt2_tokenizer": False}))
    runs = find_runs([tmp_path])
    found = with_paper_rows(compare_runs(runs), runs)
    paper = next(system for system in found.systems if system.kind == "paper")
    assert dict(paper.figures) == {"rep_1": 0.661, "rep_2": 0.5, "rep_3": 0.424}
    assert any("only Rep-n are shown: the others depend on the tokenizer" in note for note in found.notes)


def test_with_texts_of_another_length_only_the_token_columns_of_the_paper_are_shown():
    rows, said = paper_rows(CORPUS, ["MLE"], [PROTOCOL | {"new_tokens": 50}])
    windows = {"rep_window_16": 0.234, "rep_window_32": 0.38, "rep_window_128": 0.619}
    assert dict(rows[0].figures) == {"ppl": 13.241, "uniq": 12540, **windows}
    assert rows[1].label == "Human, in the paper"
    assert said[-1].endswith("depend on the length of the texts.")
    rows, said = paper_rows(CORPUS, ["MLE"], [PROTOCOL | {"new_tokens": 50, "chunk_targets": 160}])
    assert (rows, said[0].split(":")[0]) == ([], "The paper's rows do not compare")
    assert paper_rows("my notes", ["MLE"], [PROTOCOL]) == ([], [])
    assert paper_rows(CORPUS, ["my model"], [PROTOCOL]) == ([], [])


def test_the_papers_deviations_stand_with_its_rows():
    (mle, _), _ = paper_rows(CORPUS, ["MLE"], [PROTOCOL])
    assert (mle.figures["uniq_w"], mle.deviations["uniq_w"]) == (16_830, 100)
