"""Figures of tables: computed right, moved by their deviations as they should be, compared beyond a margin."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.claims.figures import Figure, Stated, extreme
from paper.claims.stored import tables_of
from paper.claims.table import Absent, Key, Table, of_paper
from paper.printed import printed
from scalegrad.results.comparison import System
from scalegrad.runs import Row

MLE, UL, WEAK, SG, HALF = Key("mle"), Key("ul", 1.0), Key("ul", 0.5), Key("sg", 0.2), Key("sg", 0.5)
HUMAN = Key("human")
VALID = of_paper(printed(11))


def system(key, figures, **others):
    return System(objective=key.objective, strength=key.strength, figures=figures, **others)


def two(a, b, da=0.0, db=0.0):
    """The x of MLE and of SG, each over 3 seeds."""
    table = Table([system(MLE, {"x": a}, deviations={"x": da}, runs=3),
                   system(SG, {"x": b}, deviations={"x": db}, runs=3)])  # fmt: skip
    return table(MLE, "x"), table(SG, "x")


def test_arithmetic_on_the_paper_s_figures():
    """By hand, from table 11."""
    t = VALID
    assert (t(WEAK, "ppl") - t(HALF, "ppl")).value == pytest.approx(14.91 - 13.53)
    ratio = 1 - (t(SG, "ppl") - 2 * t(UL, "ppl")) / t(MLE, "ppl")
    assert ratio.value == pytest.approx(1 - (14.43 - 33.04) / 13.17)
    assert t(WEAK, "rep_l").value == pytest.approx((0.217 + 0.350 + 0.579) / 3)
    assert abs(t(SG, "rep_1") - t(HUMAN, "rep_1")).value == pytest.approx(0.075)
    assert extreme(max, t(SG, "uniq"), t(UL, "uniq"), Figure("", 13000)).value == 13730
    assert extreme(min, t(SG, "uniq"), t(UL, "uniq"), Figure("", 13000)).value == 12770


def test_along_a_curve():
    """Between γ = .5 (13.53, .352) and .2 (14.43, .316), two thirds of the way in Rep/32; and at a point itself."""

    def along(family, column, by, at):
        return VALID.along(family, column, by, at if isinstance(at, Figure) else Figure("", at)).value

    assert along("sg", "ppl", "rep_window_32", 0.328) == pytest.approx(13.53 + 0.9 * 2 / 3)
    assert along("ul", "rep_1", "ppl", VALID(UL, "ppl")) == pytest.approx(0.551)
    assert along("ul", "rep_1", "ppl", 14.04) == pytest.approx(0.665 - 0.064 / 2)  # MLE is α = 0
    assert along("sg", "rep_1", "ppl", 13.22) == pytest.approx((0.665 + 0.625) / 2)  # and γ = 1
    with pytest.raises(Absent, match=r"no ppl 14.91 on SG's curve \(points: 4\)"):
        along("sg", "rep_l", "ppl", VALID(WEAK, "ppl"))


@pytest.mark.parametrize(
    ("mle", "strengths"), [(1.0, {0.2: 2.0}), (None, {0.5: 1.5, 0.2: 2.0}), (1.0, {1.0: 1.0, 0.2: 2.0})]
)
def test_two_different_points_are_no_curve(mle, strengths):
    rows = [system(Key("sg", g), {"ppl": ppl}) for g, ppl in strengths.items()]
    rows += [system(MLE, {"ppl": mle})] if mle else []
    with pytest.raises(Absent, match=r"SG.s curve .points: \d.; a curve takes 3 different ones"):
        Table(rows).along("sg", "ppl", "ppl", Figure("", 1.75))


def test_a_figure_moved_off_the_end_of_a_curve_counts_the_other_way():
    """At SG's last point (2, 4): with less of x the curve gives 3.8, with more it has no such point."""
    points = {1.0: (0.0, 0.0), 0.5: (1.0, 2.0), 0.2: (2.0, 4.0)}
    rows = [system(Key("sg", g), {"x": x, "y": y}) for g, (x, y) in points.items()]
    at = Figure("", 2.0, {("UL", "x", 3): (2.1, 1.9)})
    there = Table(rows).along("sg", "y", "x", at)
    assert (there.value, there.margin) == (4.0, pytest.approx(4.303 * 0.2))


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.01, 2), st.floats(0.01, 2))
def test_the_margin_of_a_difference_is_a_t_interval(a, b, da, db):
    """Two rows of three seeds have 4 degrees of freedom: 95% lie within 2.78 standard errors."""
    mle, sg = two(a, b, da, db)
    assert (mle - sg).value == pytest.approx(a - b)
    assert (mle - sg).margin == pytest.approx(2.776 * math.hypot(da, db) / math.sqrt(3), rel=1e-3)


def test_a_figure_that_is_in_both_sides_moves_both():
    mle, _ = two(1.0, 2.0, 0.3)
    assert (mle - mle).margin == 0
    assert (2 * mle - mle).margin == pytest.approx(mle.margin)


def test_a_row_without_deviation_adds_no_degrees_of_freedom():
    """Beside a fixed number three seeds have 2 degrees of freedom: 4.30 standard errors."""
    mle, sg = two(1.0, 2.0, 0.3)
    assert (mle - sg).margin == pytest.approx(4.303 * 0.3 / math.sqrt(3), rel=1e-3)


def test_a_quotient_moves_by_the_larger_side():
    """6 / 3 = 2; with 3 → 2 it is 3, with 3 → 4 it is 1.5: a change of 1; 6 ± .3 changes it by .1."""
    mle, sg = two(6.0, 3.0, 0.3 * math.sqrt(3), math.sqrt(3))
    assert (mle / sg).margin == pytest.approx(2.776 * math.hypot(1.0, 0.1), rel=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "spread", "holds", "turned"),
    [(1.0, 2.0, 0.9, True, False), (1.0, 2.0, 1.1, False, False), (3.0, 2.0, 0.9, False, True),
     (3.0, 2.0, 1.1, False, False), (2.0, 2.0, 0.0, False, True)],
)  # fmt: skip
def test_a_comparison_counts_beyond_the_margin(a, b, spread, holds, turned):
    mle, sg = two(a, b, spread * math.sqrt(3) / 4.303)
    check, mirrored = mle < sg, sg > mle
    assert (check.holds, check.reversed, check.left, check.right, check.seeds) == (holds, turned, a, b, 3)
    assert (mirrored.holds, mirrored.reversed) == (holds, turned)


def test_a_comparison_says_what_it_compares():
    assert (VALID(SG, "ppl") > VALID(HALF, "ppl")).text == "ppl(SG γ=0.2) > ppl(SG γ=0.5)"
    cost = VALID(SG, "ppl") - VALID(MLE, "ppl")
    assert (abs(cost).text, abs(VALID(SG, "ppl")).text) == ("abs(ppl(SG γ=0.2) - ppl(MLE))", "abs(ppl(SG γ=0.2))")
    assert (0.1 * cost < 1).text == "(0.1 * (ppl(SG γ=0.2) - ppl(MLE))) < 1"


def test_a_chain_is_refused():
    """Python would drop the first comparison of a chain without a word."""
    with pytest.raises(TypeError, match="two comparisons"):
        VALID(SG, "ppl") > VALID(HALF, "ppl") > VALID(MLE, "ppl")  # noqa: B015


def test_deviations_as_figures():
    table = Table([system(MLE, {"x": 1.0}, deviations={"x": 0.25}, runs=3)])
    deviation = table.deviation(MLE, "x")
    assert (deviation.value, deviation.margin, (deviation < 0.3).seeds) == (0.25, 0, 0)
    with pytest.raises(Absent, match="no deviation of ppl in row MLE"):
        VALID.deviation(MLE, "ppl")


def test_what_is_missing_is_named():
    with pytest.raises(Absent, match=r"no row SG γ=0\.3"):
        of_paper(printed(12))(Key("sg", 0.3), "ppl")
    with pytest.raises(Absent, match="no ppl in row Human"):
        VALID(HUMAN, "ppl")


def test_keys():
    """By fields: the decoding named or the first, the penalty as it is, the strength that was chosen, or a name."""
    table = Table([
        System(objective="ul", strength=1.0, decoding="greedy", figures={"x": 5.0}, kind="trained"),
        System(objective="ul", strength=1.0, decoding="beam=6", figures={"x": 6.0}),
        System(objective="ul", strength=1.0, decoding="greedy", penalty="soft_block=3", figures={"x": 7.0}),
        System(objective="sg", strength=0.5, figures={"x": 4.0}, chosen=True),
        System("a pair", {"x": 3.0}),
    ])  # fmt: skip
    keys = (
        UL,
        Key("ul", 1.0, "beam=6"),
        Key("ul", 1.0, penalty="soft_block=3"),
        Key("sg", chosen=True),
        Key(name="a pair"),
    )
    assert [table(key, "x").value for key in keys] == [5.0, 6.0, 7.0, 4.0, 3.0]
    with pytest.raises(Absent, match=r"no row UL α=1\.0, top_k=40"):
        table(Key("ul", 1.0, "top_k=40"), "x")


def test_stored_rows():
    """Without the paper's own; of one seed the interval over texts is the deviation; decodings are no curve."""
    about = {"task": "open_ended", "corpus": "c", "decoding": "greedy", "metric": "rep_1"}
    rows = [
        Row(value=0.4, objective="sg", strength=0.2, sd=0.01, n=3, **about),
        Row(value=0.6, objective="mle", seed=0, low=0.5, high=0.696, **about),
        Row(value=0.5, objective="mle", penalty="gamma=0.2", sd=0.01, n=3, **about),
        Row(value=0.3, objective="human", run="paper", **about),
    ]
    table = tables_of(rows)["c"]
    assert [row.label for row in table.rows] == ["MLE", "SG γ=0.2", "MLE, decoded with γ=0.2"]
    assert table(MLE, "rep_1").value == 0.6
    assert table.deviation(SG, "rep_1").value == 0.01
    assert table.deviation(MLE, "rep_1").value == pytest.approx(0.05)
    with pytest.raises(Absent, match=r"SG's curve .points: 2"):
        table.along("sg", "rep_1", "rep_1", table(MLE, "rep_1"))
    with pytest.raises(Absent, match=r"no ppl in row SG γ=0\.2"):
        table(SG, "ppl")


def test_what_a_validation_set_chose_and_lengths():
    about = {"task": "summarization", "corpus": "c", "objective": "sg", "decoding": "beam=5", "seed": 0}
    rows = [Row("rouge_1", 30.0 + g, split="test", strength=g, **about) for g in (0.2, 0.8)]
    rows += [Row("mean_rouge", 20.0 + g, split="validation", strength=g, **about) for g in (0.2, 0.8)]
    tables = tables_of(rows)
    assert list(tables) == ["c test"]  # the validation set chose, and tests nothing
    assert tables["c test"](Key("sg", chosen=True), "rouge_1").value == 30.8
    texts = [Row("rep_1", n / 1000, objective="mle", corpus="c", decoding="greedy", new_tokens=n) for n in (50, 300)]
    lengths = tables_of([replace(row, task="open_ended") for row in texts])["c"]
    assert lengths(MLE, "rep_1_at_300").value == 0.3


def test_stated_numbers():
    k, percent = Stated("5.5k", Figure("", 5599.0)), Stated("11%", Figure("", 0.1157))
    assert (k.value, k.unit, k.written(5420.0), k.agrees) == (5500.0, pytest.approx(100.0), "5.42k", True)
    assert (percent.value, percent.unit, percent.written(0.1157)) == (pytest.approx(0.11), 0.01, "11.6%")
