"""Curves held against each other: every number here is worked out by hand."""

from __future__ import annotations

import pytest

from scalegrad.lab.trade_off import comparisons, curves_of, verdict, where
from scalegrad.report.comparison import Comparison, System
from scalegrad.report.comparison.plots import trade_off


def row(label: str, ppl: float, rep: float, kind: str = "trained", family: str = "sg", strength: float | None = None):
    return System(label, {"ppl": ppl, "rep_1": rep}, kind, family, strength)


@pytest.fixture
def curves() -> Comparison:
    """MLE at (20, .8); SG to (24, .4); UL to (28, .4); the penalty to (32, .4), each through a point in between."""
    return Comparison(
        [
            row("MLE", 20.0, 0.8, family="mle"),
            row("SG γ=0.5", 21.0, 0.6, strength=0.5),
            row("SG γ=0.2", 24.0, 0.4, strength=0.2),
            row("SG γ=linear:1.0:0.2:9", 19.0, 0.3),
            row("UL α=0.5", 22.0, 0.6, family="ul", strength=0.5),
            row("UL α=2.0", 28.0, 0.2, family="ul", strength=2.0),
            row("MLE, decoded with γ=0.5", 26.0, 0.5, "decoded", "mle", 0.5),
            row("MLE, decoded with γ=0.2", 32.0, 0.2, "decoded", "mle", 0.2),
            row("MLE, beam=3", 20.0, 0.9, "decoded", "mle"),
        ]
    )


def test_the_curves_begin_with_mle_and_leave_schedules_out(curves):
    scale_grad, unlikelihood, penalty = curves_of(curves)
    assert [s.label for s in scale_grad] == ["MLE", "SG γ=0.5", "SG γ=0.2"]
    assert [s.strength for s in unlikelihood] == [None, 0.5, 2.0]
    assert [s.strength for s in penalty] == [None, 0.5, 0.2]


def test_between_two_points(curves):
    falling = [(20.0, 0.8), (26.0, 0.5), (32.0, 0.2)]
    assert where(falling, 0.4, on=1) == 28.0  # a third of the way from 26 to 32
    assert where(falling, 24.0, on=0) == 0.6  # two thirds of the way from .8 to .5
    assert where(falling, 0.8, on=1) == 20.0
    assert where(falling, 0.1, on=1) is None
    assert where([(20.0, 0.8), (20.0, 0.8)], 0.8, on=1) == 20.0


def test_what_is_said(curves):
    # UL comes to .4 half-way between (22, .6) and (28, .2), at 25; at perplexity 24 it is a third of the way: .4667.
    (said,) = comparisons(curves, "SG γ=0.2")
    assert "SG γ=0.2 has a perplexity of 24.00 at a Rep-1 of .400 (MLE: 20.00 at .800)" in said
    assert "Perplexity of the others at this Rep-1: unlikelihood 25.00, the decoding-time penalty 28.00." in said
    assert "Their Rep-1 at this perplexity: unlikelihood .467, the decoding-time penalty .600 (" in said
    assert comparisons(curves, "SG γ=0.9") == []


def test_what_is_said_where_rows_are_missing(curves):
    """MLE not scored yet, or not on texts: no other row stands in for it, and the curves begin later."""
    (said,) = comparisons(Comparison(curves.systems[1:]), "SG γ=0.2")
    assert said.startswith("SG γ=0.2 has a perplexity of 24.00 at a Rep-1 of .400. Perplexity of the others")
    assert "the decoding-time penalty 28.00" in said  # between (26, .5) and (32, .2): MLE is not needed
    assert "at this perplexity: unlikelihood .467, the decoding-time penalty " in said
    assert "penalty .600" not in said  # it lies between MLE and the first point, and MLE is not there
    (said,) = comparisons(Comparison(curves.of_kind("trained")), "SG γ=0.2")
    assert "penalty" not in said  # MLE alone is no curve
    (said,) = comparisons(Comparison(curves.systems[1:]), "SG γ=0.2")
    unread = System("MLE", {"ppl": 20.0}, family="mle")
    assert comparisons(Comparison([unread, *curves.systems[1:]]), "SG γ=0.2") == [said]
    assert [s.label for s in curves_of(Comparison(curves.systems[1:3])).scale_grad] == ["SG γ=0.5", "SG γ=0.2"]
    assert verdict(Comparison([System("SG γ=0.2", {"rep_1": 0.4}), *curves.systems[6:8]]), "SG γ=0.2") == ""


def test_does_training_win(curves):
    assert verdict(curves, "SG γ=0.2") == (
        "Does training with SG γ=0.2 beat the decoding-time penalty? Yes: at equal Rep-1 (.400) its perplexity, 24.00, "
        "is lower than that of MLE decoded with the penalty, 28.00, and at equal perplexity (24.00) its Rep-1, .400, "
        "is lower than the penalty's, .600."
    )
    worse = Comparison([row("SG γ=0.2", 30.0, 0.6, strength=0.2), *curves.systems[0:1], *curves.systems[6:8]])
    assert "penalty? No: at equal Rep-1 (.600) its perplexity, 30.00, is higher than" in verdict(worse, "SG γ=0.2")
    same = Comparison([row("SG γ=0.2", 26.05, 0.5, strength=0.2), *curves.systems[0:1], *curves.systems[6:8]])
    assert "penalty? Neither is better: at equal Rep-1" in verdict(same, "SG γ=0.2")
    apart = Comparison([row("SG γ=0.2", 50.0, 0.9, strength=0.2), *curves.systems[0:1], *curves.systems[6:8]])
    assert "no Rep-1 and no perplexity in common: the penalty's Rep-1 goes from .800 to .200" in verdict(
        apart, "SG γ=0.2"
    )
    assert verdict(Comparison(curves.systems[:3]), "SG γ=0.2") == ""  # nothing was decoded under a penalty


def test_a_schedule_is_a_point_off_the_drawn_curve(curves):
    plot = trade_off(curves)
    lines = {line.get_label(): line for line in plot.figure.axes[0].get_lines()}
    assert list(lines["SG, γ"].get_xdata()) == [20.0, 21.0, 24.0]
    assert list(lines["UL, α"].get_xdata()) == [20.0, 22.0, 28.0]
    assert list(lines["MLE, γ while decoding"].get_xdata()) == [20.0, 26.0, 32.0]
    assert any(text.get_text() == "linear:1.0:0.2:9" for text in plot.figure.axes[0].texts)


def test_one_strength_is_a_point_and_no_curve(curves):
    axes = trade_off(Comparison([curves.systems[i] for i in (0, 2, 5, 7)])).figure.axes[0]
    assert [line.get_label() for line in axes.get_lines() if len(line.get_xdata()) > 1] == []


def test_trained_models_get_the_picture_where_a_penalty_reaches_far(curves):
    """What lies outside of the frame has no name in it, and stands in the small picture with human text."""
    far = row("MLE, decoded with γ=0.1", 80.0, 0.1, "decoded", "mle", 0.1)
    human = System("Human", {"rep_1": 0.15}, "human")
    plot = trade_off(Comparison([*curves.systems, far, human]))
    (axes,) = plot.figure.axes
    (whole,) = axes.child_axes
    assert axes.get_xlim() == pytest.approx((19 - 1.08, 28 + 1.08))  # 12% beyond 19 to 28
    assert axes.get_ylim() == pytest.approx((0.2 - 0.072, 0.8 + 0.072))
    assert {"0.1", "human text"} & {text.get_text() for text in axes.texts} == set()
    assert whole.get_xlim()[1] > 80
    assert [text.get_text() for text in whole.texts] == ["human text"]
    assert plot.caption.endswith("The small picture has every point, the large one its frame.")
    assert whole.get_position().x0 > axes.get_position().x0 + 0.3  # where curves that fall leave room


def test_the_small_picture_goes_where_fewest_points_are(curves):
    rising = [row(f"SG γ={g}", 20.0 + 10 * g, g, strength=g) for g in (0.1, 0.6, 0.7, 0.8, 0.9)]
    far = [row(f"MLE, decoded with γ={g}", 90.0 - g, g, "decoded", "mle", g) for g in (0.1, 0.2, 0.3)]
    (axes,) = trade_off(Comparison([*rising, *far])).figure.axes
    (whole,) = axes.child_axes
    assert whole.get_position().x0 == pytest.approx(axes.get_position().x0, abs=0.01)
