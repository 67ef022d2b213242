"""Expressions over figures: computed right, moved by the deviations as they should be, and nothing else let through."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.claims.criteria import Reader
from paper.claims.table import Absent, Figures, FigureTable, of_paper, of_rows
from paper.printed import TABLES

NAMES = {"mle": "MLE", "ul": "UL α=1.0", "weak": "UL α=0.5", "sg": "SG γ=0.2", "half": "SG γ=0.5", "human": "Human"}
VALID = Reader(of_paper(TABLES["wikitext-103 valid"]), NAMES)


def two(a, b, da=0.0, db=0.0):
    table = FigureTable({"MLE": Figures({"x": a}, {"x": da}, 3), "SG γ=0.2": Figures({"x": b}, {"x": db}, 3)})
    return Reader(table, NAMES)


def test_arithmetic_on_the_paper_s_figures():
    """By hand, from table 11."""
    assert VALID.number("weak.ppl - half.ppl") == pytest.approx(14.91 - 13.53)
    assert VALID.number("1 - (sg.ppl + 2 * ul.ppl) / -mle.ppl") == pytest.approx(1 + (14.43 + 33.04) / 13.17)
    assert VALID.number("weak.rep_l") == pytest.approx((0.217 + 0.350 + 0.579) / 3)
    assert VALID.number("abs(sg.rep_1 - human.rep_1)") == pytest.approx(0.075)
    assert VALID.number("max(sg.uniq, ul.uniq, 13000)") == 13730
    assert VALID.number("min(sg.uniq, ul.uniq, 13000)") == 12770


def test_along_a_curve():
    """Between γ = .5 (13.53, .352) and .2 (14.43, .316), two thirds of the way in Rep/32; and at a point itself."""
    assert VALID.number("along(sg, ppl, rep_window_32, 0.328)") == pytest.approx(13.53 + 0.9 * 2 / 3)
    assert VALID.number("along(ul, rep_1, ppl, ul.ppl)") == pytest.approx(0.551)
    assert VALID.number("along(ul, rep_1, ppl, 14.04)") == pytest.approx(0.665 - 0.064 / 2)  # MLE is α = 0
    assert VALID.number("along(sg, rep_1, ppl, 13.22)") == pytest.approx((0.665 + 0.625) / 2)  # and γ = 1
    with pytest.raises(Absent, match=r"no point of SG's curve \(4 points\) has ppl 14.91"):
        VALID.number("along(sg, rep_l, ppl, weak.ppl)")


@pytest.mark.parametrize(
    ("mle", "strengths"), [(1.0, {0.2: 2.0}), (None, {0.5: 1.5, 0.2: 2.0}), (1.0, {1.0: 1.0, 0.2: 2.0})]
)
def test_two_different_points_are_no_curve(mle, strengths):
    rows = {f"SG γ={g}": Figures({"ppl": ppl}, family="sg", strength=g) for g, ppl in strengths.items()}
    rows |= {"MLE": Figures({"ppl": mle})} if mle else {}
    with pytest.raises(Absent, match="only 2 points of SG's curve, and it takes at least 3"):
        Reader(FigureTable(rows), NAMES).number("along(sg, ppl, ppl, 1.75)")


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.01, 2), st.floats(0.01, 2))
def test_the_margin_of_a_difference_is_a_t_interval(a, b, da, db):
    """Two rows of three seeds have 4 degrees of freedom: 95% lie within 2.78 standard errors."""
    value, spread = two(a, b, da, db).number_and_spread("mle.x - sg.x")
    assert value == pytest.approx(a - b)
    assert spread == pytest.approx(2.776 * math.hypot(da, db) / math.sqrt(3), rel=1e-3)


def test_a_row_without_deviation_adds_no_degrees_of_freedom():
    """Beside a fixed number three seeds have 2 degrees of freedom: 4.30 standard errors."""
    _, spread = two(1.0, 2.0, 0.3).number_and_spread("mle.x - sg.x")
    assert spread == pytest.approx(4.303 * 0.3 / math.sqrt(3), rel=1e-3)


def test_a_quotient_moves_by_the_larger_side():
    """6 / 3 = 2; with 3 → 2 it is 3, with 3 → 4 it is 1.5: a change of 1; 6 ± .3 changes it by .1."""
    _, spread = two(6.0, 3.0, 0.3 * math.sqrt(3), math.sqrt(3)).number_and_spread("mle.x / sg.x")
    assert spread == pytest.approx(2.776 * math.hypot(1.0, 0.1), rel=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "spread", "holds", "turned"),
    [(1.0, 2.0, 0.9, True, False), (1.0, 2.0, 1.1, False, False), (3.0, 2.0, 0.9, False, True),
     (3.0, 2.0, 1.1, False, False), (2.0, 2.0, 0.0, False, True)],
)  # fmt: skip
def test_a_comparison_counts_beyond_the_margin(a, b, spread, holds, turned):
    deviation = spread * math.sqrt(3) / 4.303
    (check,) = two(a, b, deviation).checks("mle.x < sg.x")
    assert (check.holds, check.reversed, check.left, check.right) == (holds, turned, a, b)
    (mirrored,) = two(a, b, deviation).checks("sg.x > mle.x")
    assert (mirrored.holds, mirrored.reversed) == (holds, turned)


def test_a_chain_is_its_comparisons():
    checks = VALID.checks("sg.ppl > half.ppl > mle.ppl > 14")
    assert [check.text for check in checks] == ["sg.ppl > half.ppl", "half.ppl > mle.ppl", "mle.ppl > 14"]
    assert [check.holds for check in checks] == [True, True, False]


def test_deviations_as_figures():
    reader = two(1.0, 2.0, 0.25)
    assert reader.number("deviation(mle.x)") == 0.25
    with pytest.raises(Absent, match="no deviation of ppl in row MLE"):
        VALID.number("deviation(mle.ppl)")


@pytest.mark.parametrize("text", ["__import__('os')", "mle.ppl.real", "mle['ppl']", "[1][0]", "True", "'a'", "mle"])
def test_nothing_else_is_an_expression(text):
    with pytest.raises(ValueError, match="an expression has figures"):
        VALID.number(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("mle.ppl == 3", "compares with < or >"), ("mle.ppl", "compares with < or >"), ("mle.ppl <", "not an expression"),
     ("xx.ppl < 3", "'xx' names no row"), ("abs(1, 2) < 3", "abs is not called like this: 1, 2"),
     ("along(xx, ppl, ppl, 3) < 3", "a curve is of sg or ul, not 'xx'")],
)  # fmt: skip
def test_mistakes_are_named(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        VALID.checks(text)


def test_what_is_missing_is_named():
    with pytest.raises(Absent, match=r"no row SG γ=0\.3"):
        Reader(of_paper(TABLES["imdb"]), {"sg": "SG γ=0.3"}).number("sg.ppl")
    with pytest.raises(Absent, match="no ppl in row Human"):
        VALID.number("human.ppl")


def test_stored_rows():
    """Without the paper's own; of one seed the interval over texts is the deviation; decodings are no curve."""
    seeds = {"family": "sg", "strength": 0.2, "runs": 3, "deviations": {"rep_1": 0.01}, "intervals": {"rep_1": [0, 1]}}
    once = {"family": "mle", "strength": None, "runs": 1, "deviations": {}, "intervals": {"rep_1": [0.5, 0.696]}}
    table = of_rows([
        {"label": "SG γ=0.2", "kind": "trained", "figures": {"rep_1": 0.4, "ppl": None}, **seeds},
        {"label": "MLE", "kind": "trained", "figures": {"rep_1": 0.6}, **once},
        {"label": "MLE", "kind": "trained", "figures": {"rep_1": 0.9}, **once},
        {"label": "MLE, decoded with γ=0.2", "kind": "decoded", "figures": {"rep_1": 0.5}, **seeds},
        {"label": "Human, in the paper", "kind": "paper", "figures": {"rep_1": 0.3}},
    ])  # fmt: skip
    assert list(table.rows) == ["SG γ=0.2", "MLE", "MLE, decoded with γ=0.2"]
    assert table.value("MLE", "rep_1") == 0.6
    assert table.deviation("SG γ=0.2", "rep_1") == 0.01
    assert table.deviation("MLE", "rep_1") == pytest.approx(0.05)
    assert table.curve("sg") == ["MLE", "SG γ=0.2"]
    with pytest.raises(Absent, match=r"no ppl in row SG γ=0\.2"):
        table.value("SG γ=0.2", "ppl")
