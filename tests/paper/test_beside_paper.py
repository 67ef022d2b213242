"""Rows beside the paper's, and what the pictures show."""

import pytest

from paper.beside_paper import beside_paper, difference_plot, in_paper, paper_rows
from paper.printed import printed
from paper.rows import beside
from scalegrad.results.comparison import Comparison, compare
from scalegrad.results.frame import frame
from scalegrad.runs import Row, Run

ABOUT = {"corpus": "c", "split": "test"}
SYSTEMS = {"mle": None, "ul": 0.5, "sg": 0.5}


def captioners(*ciders, spread=None, penalty=None):
    return [
        Row("cider", cider, objective=name, strength=strength, decoding="greedy", penalty=penalty, sd=spread, **ABOUT)
        for (name, strength), cider in zip(SYSTEMS.items(), ciders, strict=True)
    ]


def with_paper(rows, table=4):
    return compare(frame([*rows, *beside(printed(table), "c", "test")]))


def test_a_system_finds_its_row_in_the_paper_by_its_fields():
    table = with_paper([*captioners(10.0, 14.0, 19.0), *captioners(40.0, 50.0, 60.0, penalty="soft_block=3")])
    values = {s.label: in_paper(s, table).figures["cider"] for s in table.of_kind("trained", "decoded")}
    assert values == {
        "MLE": 10.51, "UL α=0.5": 14.65, "SG γ=0.5": 19.42,
        "MLE, soft_block=3": 22.77, "UL α=0.5, soft_block=3": 22.25, "SG γ=0.5, soft_block=3": 24.62,
    }  # fmt: skip
    decoded = [Row("rep_1", 0.5, objective="sg", strength=0.2, decoding=d, **ABOUT) for d in ("greedy", "beam=6")]
    table = with_paper(decoded, 17)
    assert [in_paper(s, table).figures["rep_1"] for s in table.of_kind("trained", "decoded")] == [0.443, 0.453]


def test_two_panels_with_their_own_scales():
    plot = beside_paper(with_paper(captioners(10.0, 14.0, 19.0, spread=1.0)), "cider", "captioning", "CIDEr")
    left, right = plot.figure.axes
    assert [bar.get_width() for bar in left.patches] == [10.0, 14.0, 19.0]
    assert [bar.get_width() for bar in right.patches] == [10.51, 14.65, 19.42]
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["MLE", "UL α=0.5", "SG γ=0.5"]
    assert [line.get_xdata().tolist() for line in left.lines] == [[9.0, 11.0], [13.0, 15.0], [18.0, 20.0]]
    assert "Lines: deviation over seeds." in plot.caption
    assert beside_paper(with_paper(captioners(10.0, 14.0, 19.0)), "rouge_1", "none", "") is None


def test_differences_with_their_intervals():
    about = {"decoding": "beam=5", **ABOUT}
    rows = [
        Row("rouge_1_minus_mle", 0.5, low=-0.5, high=1.5, objective="ul", strength=0.5, **about),
        Row("rep_1_minus_mle", -0.1, low=-0.2, high=-0.05, objective="ul", strength=0.5, **about),
        Row("rouge_1_minus_mle", 1.0, low=0.5, high=1.5, objective="sg", strength=0.5, **about),
    ]
    plot = difference_plot(compare(frame(rows)), ("rouge_1", "rep_1"), "gains", "against MLE")
    (axes,) = plot.figure.axes  # only what both have
    assert [list(line.get_xdata()) for line in axes.lines[:4]] == [[-0.5, 1.5], [0.5], [0.5, 1.5], [1.0]]
    assert difference_plot(Comparison([]), ("rouge_1",), "none", "") is None


HERE = [
    Row(metric, 1.0, objective="mle", corpus="wikitext-103", split="test", decoding=decoding)
    for metric, decoding in (("ppl", None), ("rep_window_16", None), ("rep_1", "greedy"), ("uniq_w", "greedy"))
]


@pytest.mark.parametrize(
    ("settings", "metrics", "reason"),
    [
        ({}, {"ppl", "rep_window_16", "rep_1", "uniq_w"}, "150 tokens"),
        ({"tokenizer": "another"}, {"rep_1"}, "depend on the tokenizer"),
        ({"new_tokens": 50}, {"ppl", "rep_window_16"}, "depend on the length"),
        ({"new_tokens": 50, "window": 160}, set(), "do not compare"),
    ],
)
def test_columns_that_do_not_compare_are_left_out(tmp_path, settings, metrics, reason):
    run = Run.create(tmp_path / "mle-seed-0", {"objective": "mle"})
    measured = {"corpus": "wikitext-103", "split": "test", "tokenizer": "gpt2", "window": 1024, "new_tokens": 100}
    run.add(HERE, measured | settings)
    rows, notes = paper_rows(1, HERE, [run])
    assert {row.metric for row in rows} == metrics
    assert {row.objective for row in rows} <= {"mle"}  # the paper's rows of what is here
    assert reason in notes[-1]


def test_the_papers_deviations_stand_with_its_rows():
    (row,) = [row for row in paper_rows(1, HERE, [])[0] if row.metric == "uniq_w"]
    assert (row.value, row.sd) == (16_830, 100)
    assert not [row for row in paper_rows(17, HERE, [])[0] if row.decoding == "beam=6"]
