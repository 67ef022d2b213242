"""The gradient figure's numbers against the paper's formulas written out, and the picture against its numbers."""

import itertools
import math

import pytest
import torch

from paper.gradients import SEEN, TARGET, draw_gradients, gradient_curves, token_gradients
from scalegrad.nn import UnlikelihoodLoss
from tests import oracles


def close(actual, expected, tolerance=1e-12):
    assert len(actual) == len(expected)
    assert max(abs(a - b) for a, b in zip(actual, expected, strict=True)) < tolerance


@pytest.mark.parametrize("gamma", [0.05, 0.2, 0.8, 1.0])
def test_four_kinds_are_equation_6(gamma):
    curves = gradient_curves(gamma)
    lam = [gamma * p / (gamma * p + 1 - p) for p in curves.p]  # a novel token's p̃
    alpha = [p / (p + gamma * (1 - p)) for p in curves.p]  # a seen token's p̃
    close(curves.scale_grad["T-N"], [1 - x for x in lam])
    close(curves.scale_grad["T-NN"], [1 - x for x in alpha])
    close(curves.scale_grad["NT-N"], lam)
    close(curves.scale_grad["NT-NN"], alpha)
    close(curves.mle["T"], [1 - p for p in curves.p])
    close(curves.mle["NT"], curves.p)


def test_scale_grad_of_one_is_the_mle_line():
    curves = gradient_curves(1.0)
    close(curves.scale_grad["T-N"], curves.mle["T"])
    close(curves.scale_grad["NT-NN"], curves.mle["NT"])


def test_novel_targets_get_more_than_mle_and_seen_ones_less_always_falling_with_p():
    curves = gradient_curves(0.2)
    more, less, mle = curves.scale_grad["T-N"], curves.scale_grad["T-NN"], curves.mle["T"]
    assert all(a > b > c for a, b, c in zip(more, mle, less, strict=True))
    for line in (more, less):
        assert all(a > b for a, b in itertools.pairwise(line))


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0, 1.5, 20.0])
def test_unlikelihoods_factor_turns_negative_at_one_over_alpha_plus_one(alpha):
    curves = gradient_curves(alpha=alpha)
    assert curves.turns_negative_at == pytest.approx(1 / (alpha + 1), abs=1e-9)
    close(curves.factor["UL"], [1 - alpha * p / (1 - p) for p in curves.p], 1e-10)
    close(curves.factor["SG"], [0.2 / (0.2 + 0.8 * p) for p in curves.p])  # λ, never under γ
    close(curves.factor["MLE"], [1.0] * len(curves.p))


def test_alpha_zero_has_no_turning_point():
    curves = gradient_curves(alpha=0.0)
    assert curves.turns_negative_at is None
    close(curves.factor["UL"], [1.0] * len(curves.p))


def test_norm_at_the_target_falls_below_the_turning_point_is_flat_at_it_and_grows_above():
    below, at, above = gradient_curves(alpha=1.0).at_target
    assert [curve.p_negative for curve in (below, at, above)] == pytest.approx([0.25, 0.5, 0.75], abs=1e-9)
    for curve in (below, at, above):
        factor = 1 - curve.p_negative / (1 - curve.p_negative)
        close(curve.norm, [1 - factor * p for p in curve.p_target], 1e-10)
    assert below.norm[0] > below.norm[-1]
    assert above.norm[0] < above.norm[-1]


def test_descent_step_is_the_oracles():
    """Δp_k of a small step is p_k · (Σ_j p_j g_j − g_k), here with the gradient from plain Python loops."""
    for curve in gradient_curves(alpha=1.0).at_target:
        expected = []
        for p_target in curve.p_target:
            p = [curve.p_negative, p_target, 1 - curve.p_negative - p_target]
            _, gradient = oracles.unlikelihood([math.log(x) for x in p], TARGET, {SEEN}, 1.0)
            mean = sum(x * g for x, g in zip(p, gradient, strict=True))
            expected.append(p_target * (mean - gradient[TARGET]))
        close(curve.p_change, expected, 2e-3)  # a step of 1e-3 is not yet a derivative
        assert min(curve.p_change) > 0


@pytest.mark.parametrize(("alpha", "always"), [(0.5, True), (1.0, True), (1.5, True), (12.0, True), (14.0, False)])
def test_a_descent_step_raises_the_target_for_every_alpha_in_use(alpha, always):
    assert gradient_curves(alpha=alpha).step_always_raises is always


@pytest.mark.parametrize(("alpha", "falls"), [(12.9, False), (12.95, True)])
def test_where_a_step_begins_to_lower_the_target(alpha, falls):
    """With one negative, p_k → 0 is the worst place: 2 − (2 + α)p + (2 + 2α)p² has a zero from α = 6 + 4√3 ≈ 12.93."""
    p_negative = torch.linspace(0.2, 0.35, 200, dtype=torch.float64)
    p_target = torch.full_like(p_negative, 1e-9)
    p = torch.stack([p_negative, p_target, 1 - p_negative - p_target], 1)
    gradient = token_gradients(UnlikelihoodLoss(alpha, reduction="sum"), p, TARGET)
    relative = (p * gradient).sum(1) - gradient[:, TARGET]
    assert bool((relative < 0).any()) is falls


def test_picture_shows_the_numbers():
    curves = gradient_curves(0.3, 2.0)
    kinds, factor, norm, step = draw_gradients(curves).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in kinds.lines}
    assert drawn["T-NN: target, not novel"] == curves.scale_grad["T-NN"]
    assert drawn["NT-N: other, novel"] == curves.scale_grad["NT-N"]
    assert any(list(line.get_ydata()) == curves.factor["UL"] for line in factor.lines)
    assert "0.333" in " ".join(text.get_text() for text in factor.texts)
    for panel, field in ((norm, "norm"), (step, "p_change")):
        lines = [list(line.get_ydata()) for line in panel.lines]
        assert all(getattr(curve, field) in lines for curve in curves.at_target)


def test_titles_say_only_what_the_numbers_show():
    def titles(alpha):
        return [axes.get_title(loc="left") for axes in draw_gradients(gradient_curves(alpha=alpha)).axes]

    assert "turns negative" in titles(1.0)[1]
    assert "then grows" in titles(1.0)[2]
    assert "yet a descent step still raises" in titles(1.0)[3]
    assert "is 1" in titles(0.0)[1]
    assert "falls" in titles(0.0)[2]
    assert "does not always raise" in titles(14.0)[3]


def test_bad_strengths_are_named():
    with pytest.raises(ValueError, match=r"gamma must be a number in \(0, 1\], not 0"):
        gradient_curves(0)
    with pytest.raises(ValueError, match="alpha must be a finite number from 0, not -1"):
        gradient_curves(alpha=-1)
