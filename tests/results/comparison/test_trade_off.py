"""Perplexity against repetition, as curves and as a picture: every number here is worked out by hand."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest

from scalegrad.results.comparison import Comparison, System
from scalegrad.results.comparison.curve import swept, where
from scalegrad.results.comparison.trade_off import TWO_LENGTHS, trade_off


def row(ppl: float, rep: float, objective: str = "sg", strength: float | str | None = None, **decoded: str) -> System:
    return System(figures={"ppl": ppl, "rep_1": rep}, objective=objective, strength=strength, **decoded)


def penalised(ppl: float, rep: float, gamma: float) -> System:
    return row(ppl, rep, "mle", decoding="greedy", penalty=f"gamma={gamma}")


def penalties(ppl: float) -> list[System]:
    """Three decodings of MLE, at a perplexity far beyond that of what was trained."""
    return [penalised(ppl - 9 * g, g, g) for g in (0.1, 0.2, 0.3)]


HUMAN = System(figures={"rep_1": 0.35}, objective="human")
RISING = [row(20.0 + 10 * g, g, strength=g) for g in (0.1, 0.6, 0.7, 0.8, 0.9)]
BOTH_CORNERS = [row(20.0 + 10 * g, g, strength=g) for g in (0.1, 0.15, 0.2, 0.6, 0.7, 0.8, 0.9)]
BULGING = [
    row(20.0, 0.8, objective="mle"),
    *(row(ppl, rep, strength=g) for g, ppl, rep in (
        (0.9, 24.9, 0.79), (0.8, 25.0, 0.7), (0.5, 25.1, 0.62), (0.3, 28.0, 0.35), (0.1, 30.0, 0.2),
    )),
]  # fmt: skip
SPREAD = [
    replace(BULGING[0], deviations={"ppl": 0.4, "rep_1": 0.2}),
    *BULGING[3:],
    row(24.0, 0.6, "ul", 1.0),
]


@pytest.fixture
def curves() -> Comparison:
    """MLE at (20, .8); SG to (24, .4); UL to (28, .4); the penalty to (32, .4), each through a point in between."""
    return Comparison(
        [
            row(20.0, 0.8, objective="mle"),
            row(21.0, 0.6, strength=0.5),
            row(24.0, 0.4, strength=0.2),
            row(19.0, 0.3, strength="linear:1.0:0.2:9"),
            row(22.0, 0.6, objective="ul", strength=0.5),
            row(28.0, 0.2, objective="ul", strength=2.0),
            penalised(26.0, 0.5, 0.5),
            penalised(32.0, 0.2, 0.2),
            row(20.0, 0.9, "mle", decoding="beam=3"),
        ]
    )


def test_the_curves_begin_with_mle_and_leave_schedules_out(curves):
    assert [s.label for s in swept(curves.systems, "trained", "sg")] == ["MLE", "SG γ=0.5", "SG γ=0.2"]
    assert [s.level for s in swept(curves.systems, "trained", "ul")] == [None, 0.5, 2.0]
    assert [s.level for s in swept(curves.systems, "decoded", "mle")] == [None, 0.5, 0.2]
    assert [s.label for s in swept(curves.systems[1:3], "trained", "sg")] == [
        "SG γ=0.5",
        "SG γ=0.2",
    ]  # no MLE


def test_between_two_points():
    falling = [(20.0, 0.8), (26.0, 0.5), (32.0, 0.2)]
    assert where(falling, 0.4, on=1) == 28.0  # a third of the way from 26 to 32
    assert where(falling, 24.0, on=0) == 0.6  # two thirds of the way from .8 to .5
    assert where(falling, 0.8, on=1) == 20.0
    assert where(falling, 0.1, on=1) is None
    assert where([(20.0, 0.8), (20.0, 0.8)], 0.8, on=1) == 20.0


def test_two_lengths_are_noted_where_a_penalty_is_beside_rep_n_of_texts(curves):
    assert TWO_LENGTHS in trade_off(curves).caption
    assert TWO_LENGTHS not in trade_off(Comparison(curves.of_kind("trained"))).caption
    of_chunks = [
        replace(system, figures={"ppl": system.figures["ppl"], "rep_window_128": system.figures["rep_1"]})
        for system in curves.systems
    ]
    assert TWO_LENGTHS not in trade_off(Comparison(of_chunks)).caption  # both are of the same chunks


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
    far = penalised(80.0, 0.1, 0.1)
    human = System(figures={"rep_1": 0.05}, objective="human")
    plot = trade_off(Comparison([*curves.systems[:6], *curves.systems[7:], far, human]))
    (axes,) = plot.figure.axes
    (whole,) = axes.child_axes
    assert axes.get_xlim() == pytest.approx((19 - 1.08, 28 + 1.08))  # 12% beyond 19 to 28
    assert axes.get_ylim() == pytest.approx((0.2 - 0.072, 0.8 + 0.072))
    assert {"0.1", "human text"} & {text.get_text() for text in axes.texts} == set()
    assert whole.get_xlim()[1] > 80
    assert [text.get_text() for text in whole.texts] == ["human text"]
    assert plot.caption.endswith("The small picture has every point, the large one its frame.")
    assert whole.get_position().x0 > axes.get_position().x0 + 0.3  # where curves that fall leave room


def test_human_text_is_a_line_in_both_pictures_where_the_frame_has_it(curves):
    human = System(figures={"rep_1": 0.5}, objective="human")
    (axes,) = trade_off(Comparison([*curves.systems, *penalties(90.0), human])).figure.axes
    for panel in (axes, *axes.child_axes):
        assert any(set(line.get_ydata()) == {0.5} for line in panel.get_lines())
    assert "human text" in {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("trained", [RISING, BOTH_CORNERS, BULGING, SPREAD])
def test_the_small_picture_covers_nothing(trained):
    """Neither a point with its error bar nor a name, nor have its numbers anything beneath them."""
    plot = trade_off(Comparison([*trained, *penalties(200.0), HUMAN]))
    plot.figure.draw_without_rendering()
    (axes,) = plot.figure.axes
    (whole,) = axes.child_axes
    box, frame = whole.get_tightbbox(), axes.get_window_extent()
    assert frame.x0 < box.x0 < box.x1 < frame.x1 + 2  # the numbers of the large picture are elsewhere
    assert frame.y0 < box.y0 < box.y1 < frame.y1 + 2
    for system in trained:
        (x, y), dx, dy = system.figures.values(), *(system.deviations.get(name, 0.0) for name in ("ppl", "rep_1"))
        for at in ((x, y), (x - dx, y), (x + dx, y), (x, y - dy), (x, y + dy)):
            place = axes.transData.transform(at)
            assert frame.contains(*place)
            assert not box.contains(*place)
    names = [text.get_window_extent() for text in axes.texts]
    assert len(names) > len(trained)  # all of them, and human text
    assert not any(name.overlaps(box) for name in names)


def test_one_strength_among_many_points_has_its_whole_label(curves):
    """No curve of the legend has its colour."""
    strengths = [row(20 + 4 * (1 - g), 0.8 - 0.5 * (1 - g), strength=g) for g in (0.1, 0.2, 0.4, 0.5, 0.7)]
    others = [row(22.0, 0.7, objective="ul", strength=1.0), curves.systems[8]]
    figure = trade_off(Comparison([curves.systems[0], *strengths, *others])).figure
    names = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(names) == sorted(["MLE", "UL α=1.0", "MLE, beam=3", "0.1", "0.2", "0.4", "0.5", "0.7"])
    assert in_legend(figure) == ["SG, γ"]


def test_what_finds_no_place_is_in_the_legend():
    same = [row(20.0, 0.5, strength=g) for g in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)]
    figure = trade_off(Comparison(same)).figure
    written = [text.get_text() for text in figure.axes[0].texts]
    assert len(written) < 8
    assert sorted(written + in_legend(figure)) == [system.label for system in same]


def test_without_a_curve_there_is_no_legend():
    schedules = [row(20.0 + at, 0.8 - 0.05 * at, strength=f"linear:1.0:0.{at}:9") for at in range(1, 10)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = trade_off(Comparison(schedules)).figure
    assert {text.get_text() for text in figure.axes[0].texts} == {system.label for system in schedules}
    assert in_legend(figure) == []


@pytest.mark.parametrize(("ppl", "rep"), [(math.nan, 0.5), (math.inf, 0.5), (20.0, math.nan)])
@pytest.mark.parametrize("at", [0, 2, 7])
def test_what_is_not_finite_is_not_drawn(curves, at, ppl, rep):
    systems = [*curves.systems, *penalties(90.0), System(figures={"rep_1": math.nan}, objective="human")]
    systems[at] = replace(systems[at], figures={"ppl": ppl, "rep_1": rep})
    axes = trade_off(Comparison(systems)).figure.axes[0]
    drawn = [axes.lines, *(inset.lines for inset in axes.child_axes)]
    assert all(math.isfinite(place) for lines in drawn for line in lines for xy in line.get_xydata() for place in xy)
    assert trade_off(Comparison([systems[at], systems[1]])) is None


def in_legend(figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]
