"""The paper's gradient figure: how hard each loss pushes a token, by kind of token and by its probability.

Every number is the gradient that autograd gives for the library's own losses on a toy vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss
from scalegrad.results.figure import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    VERMILLION,
    new_figure,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 99  # of each curve: p = .01, .02, …, .99
PLACES = 49  # of each of two probabilities, where the effect of a descent step is tried
STEP = 1e-3  # of the descent step, on the logits
SEEN, TARGET, OTHER = 0, 1, 2  # the three tokens of the unlikelihood example

TokenLoss = Callable[..., Tensor]  # of logits, targets and segments, to the sum over all steps


@dataclass(frozen=True)
class TargetCurves:
    """Unlikelihood at the target, for one probability of the negative token."""

    p_negative: float
    p_target: list[float]
    norm: list[float]  # |∂L/∂o_k|, what the paper reasons from
    p_change: list[float]  # how fast a descent step on the logits moves p_k: Δp_k / step


@dataclass(frozen=True)
class GradientCurves:
    """The numbers of the figure.

    `scale_grad` has |∂L/∂o_i| against p_i for a vocabulary of two tokens, one of them novel, for each kind of token:
    target or not (T, NT), novel or not (N, NN). The rest is a vocabulary of three: the target, a token that was seen
    (unlikelihood's negative candidate) and another.
    """

    gamma: float
    alpha: float
    p: list[float]
    scale_grad: dict[str, list[float]]  # T-N, T-NN, NT-N, NT-NN
    mle: dict[str, list[float]]  # T, NT
    factor: dict[str, list[float]]  # of UL, SG and MLE: gradient of the other token over its p, against p_negative
    turns_negative_at: float | None  # the p_negative where unlikelihood's factor is 0; None where it never is
    at_target: list[TargetCurves]  # below, at and above that place
    step_always_raises: bool  # did a descent step raise p_k at all 49 × 49 places (p_negative, p_k) tried?


def gradient_curves(gamma: float = 0.2, alpha: float = 1.0) -> GradientCurves:
    """Gradients of MLE, ScaleGrad(γ) and unlikelihood(α) against p.

    >>> curves = gradient_curves(gamma=0.2, alpha=1.0)
    >>> half = curves.p.index(0.5)
    >>> round(curves.scale_grad["T-N"][half], 4)  # 1 − γp/(γp + 1 − p) = 1 − .1/.6
    0.8333
    >>> round(curves.turns_negative_at, 6)  # 1/(α + 1)
    0.5
    """
    p = torch.arange(1, POINTS + 1, dtype=torch.float64) / (POINTS + 1)

    sg, ul = ScaleGradLoss(gamma, reduction="sum"), UnlikelihoodLoss(alpha, reduction="sum")
    crossing = _turns_negative_at(ul) if alpha > 0 else None
    middle = 0.5 if crossing is None else crossing
    return GradientCurves(
        gamma,
        alpha,
        p.tolist(),
        _four_kinds(sg, p),
        {"T": _two_tokens(_mle, p, token=1, target=1), "NT": _two_tokens(_mle, p, token=1, target=0)},
        {name: _factor(loss, p).tolist() for name, loss in (("UL", ul), ("SG", sg), ("MLE", _mle))},
        crossing,
        [_at_target(ul, p_negative) for p_negative in (middle / 2, middle, (1 + middle) / 2)],
        _always_raises(ul),
    )


def _mle(logits: Tensor, targets: Tensor, segments: Tensor) -> Tensor:
    return cross_entropy(logits, targets, reduction="sum")


def token_gradients(loss: TokenLoss, p: Tensor, target: int) -> Tensor:
    """∂loss/∂logits [P, V] where token 0 has been seen: the second step of the document (0, target).

    `p` [P, V] are the probabilities at that step, each row a document of its own.
    """
    logits = torch.stack([torch.zeros_like(p), p.log()], 1).flatten(0, 1).requires_grad_()  # [2P, V]
    targets = torch.tensor([SEEN, target]).repeat(len(p))
    segments = torch.arange(len(p)).repeat_interleave(2)
    (gradient,) = torch.autograd.grad(loss(logits, targets, segments=segments), logits)
    return gradient[1::2]


def _two_tokens(loss: TokenLoss, p: Tensor, *, token: int, target: int) -> list[float]:
    """|gradient| of `token` (0 was seen, 1 is novel) against its own probability."""
    probabilities = torch.stack([p, 1 - p] if token == 0 else [1 - p, p], 1)
    norm: list[float] = token_gradients(loss, probabilities, target)[:, token].abs().tolist()
    return norm


def _four_kinds(loss: TokenLoss, p: Tensor) -> dict[str, list[float]]:
    return {
        "T-N": _two_tokens(loss, p, token=1, target=1),
        "T-NN": _two_tokens(loss, p, token=0, target=0),
        "NT-N": _two_tokens(loss, p, token=1, target=0),
        "NT-NN": _two_tokens(loss, p, token=0, target=1),
    }


def _factor(loss: TokenLoss, p_negative: Tensor) -> Tensor:
    """What multiplies p in the gradient of a token that is neither target nor negative; 1 − αR for unlikelihood."""
    rest = (1 - p_negative) / 2
    gradient = token_gradients(loss, torch.stack([p_negative, rest, rest], 1), TARGET)
    return gradient[:, OTHER] / rest


def _turns_negative_at(loss: TokenLoss) -> float:
    """The p_negative at which the factor passes 0, found on the gradient itself by narrowing a bracket."""
    low, high = 0.0, 1.0
    for _ in range(5):
        grid = torch.linspace(low, high, 130, dtype=torch.float64)[1:-1]
        above = grid[_factor(loss, grid) < 0]
        below = grid[_factor(loss, grid) >= 0]
        low, high = float(below.max()) if len(below) else low, float(above.min()) if len(above) else high
    return (low + high) / 2


def _at_target(loss: TokenLoss, p_negative: float) -> TargetCurves:
    p_target = torch.arange(1, POINTS + 1, dtype=torch.float64) / (POINTS + 1) * (1 - p_negative)
    norm, change = _norm_and_change(loss, torch.full_like(p_target, p_negative), p_target)
    return TargetCurves(p_negative, p_target.tolist(), norm.tolist(), change.tolist())


def _always_raises(loss: TokenLoss) -> bool:
    grid = torch.arange(1, PLACES + 1, dtype=torch.float64) / (PLACES + 1)
    p_negative, share = torch.cartesian_prod(grid, grid.square()).unbind(1)  # squared: p_k near 0 is the worst place
    _, change = _norm_and_change(loss, p_negative, share * (1 - p_negative))
    return bool((change > 0).all())


def _norm_and_change(loss: TokenLoss, p_negative: Tensor, p_target: Tensor) -> tuple[Tensor, Tensor]:
    """|∂L/∂o_k| and Δp_k / step, for each pair of probabilities."""
    p = torch.stack([p_negative, p_target, 1 - p_negative - p_target], 1)
    gradient = token_gradients(loss, p, TARGET)
    stepped = (p.log() - STEP * gradient).softmax(1)
    return gradient[:, TARGET].abs(), (stepped[:, TARGET] - p_target) / STEP


def unlikelihood_sentences(curves: GradientCurves) -> list[str]:
    """What becomes of unlikelihood's factor 1 − αR, and of the target's probability."""
    effect = "raises p_k everywhere" if curves.step_always_raises else "does not raise p_k everywhere"
    tried = f"A small descent step on the logits {effect} ({PLACES} × {PLACES} places tried)."
    if curves.turns_negative_at is None:
        return ["With α = 0 the factor 1 − αR is 1: this is MLE.", tried]
    expected = 1 / (curves.alpha + 1)
    return [
        f"The factor 1 − αR turns negative at p_neg = {curves.turns_negative_at:.6g} (1/(α + 1) = {expected:.6g}).",
        "Above it the norm at the target grows with p_k, from which the paper infers that training lowers p_k.",
        tried,
    ]


# ---- the figure ------------------------------------------------------------------------------------------------------

MLE_LINE: dict[str, Any] = {"color": GREY, "linewidth": 1.4, "linestyle": (0, (5, 3))}


def draw_gradients(curves: GradientCurves) -> Figure:
    """Four panels: ScaleGrad's gradients, unlikelihood's factor, and the two readings of what that does to p_k."""
    figure = new_figure(10, 7.4)
    (kinds, factor), (norm, step) = figure.subplots(2, 2)
    _draw_kinds(kinds, curves)
    _draw_factor(factor, curves)
    _draw_norm(norm, curves)
    _draw_step(step, curves)
    return figure


def _draw_kinds(axes: Axes, curves: GradientCurves) -> None:
    style_axes(
        axes,
        title=f"a  ScaleGrad (γ = {curves.gamma:g}): two tokens, one novel",
        x="probability $p$ of the token",
        y=r"gradient norm  $|\partial L\,/\,\partial o|$",
    )
    looks = {
        "T-N": (BLUE, "-", "target, novel"),
        "T-NN": (VERMILLION, "-", "target, not novel"),
        "NT-N": (BLUE, (0, (1, 1)), "other, novel"),
        "NT-NN": (VERMILLION, (0, (1, 1)), "other, not novel"),
    }
    for kind, (colour, line, meaning) in looks.items():
        label = f"{kind}: {meaning}"
        axes.plot(curves.p, curves.scale_grad[kind], color=colour, linestyle=line, linewidth=2.4, label=label)
    axes.plot(curves.p, curves.mle["T"], label="MLE", **MLE_LINE)
    axes.plot(curves.p, curves.mle["NT"], **MLE_LINE)
    below = {"loc": "upper center", "bbox_to_anchor": (0.47, -0.16), "ncols": 3, "columnspacing": 1.2}
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5, **below)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _draw_factor(axes: Axes, curves: GradientCurves) -> None:
    at = curves.turns_negative_at
    style_axes(
        axes,
        title=f"b  Unlikelihood (α = {curves.alpha:g}): its factor {'is 1' if at is None else 'turns negative'}",
        x=r"probability $p_\mathrm{neg}$ of the token already seen",
        y=r"gradient of a bystander  $/\ p$",
    )
    axes.set(xlim=(0, 1), ylim=(-2, 1.3))
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.plot(curves.p, curves.factor["UL"], color=GREEN, linewidth=2.4, label=r"UL: $1 - \alpha R$")
    axes.plot(curves.p, curves.factor["SG"], color=BLUE, linewidth=2.4, label=r"SG: $\lambda$, within $[\gamma, 1]$")
    axes.plot(curves.p, curves.factor["MLE"], label="MLE: 1", **MLE_LINE)
    if at is not None:
        axes.axvspan(at, 1, color=GREEN, alpha=0.08, linewidth=0)
        axes.plot([at], [0], "o", color=GREEN, markersize=6)
        where = f"$p_\\mathrm{{neg}} = 1/(\\alpha + 1) = {at:.3g}$"
        side = ("right", -9) if at > 0.45 else ("left", 9)
        axes.annotate(where, (at, 0), (side[1], -16), textcoords="offset points", ha=side[0], fontsize=10, color=INK)
    axes.legend(
        frameon=False, labelcolor=INK, fontsize=9.5, loc="lower left" if at is None or at > 0.3 else "lower right"
    )


def _draw_norm(axes: Axes, curves: GradientCurves) -> None:
    style_axes(
        axes,
        title=f"c  …its norm at the target {'then grows' if _norm_grows(curves) else 'falls'} with $p_k$",
        x="probability $p_k$ of the target",
        y=r"gradient norm  $|\partial L\,/\,\partial o_k|$",
    )
    axes.plot(curves.p, curves.mle["T"], label="MLE", **MLE_LINE)
    _draw_at_target(axes, [(curve, curve.norm) for curve in curves.at_target])


def _draw_step(axes: Axes, curves: GradientCurves) -> None:
    effect = "still raises" if curves.step_always_raises else "does not always raise"
    style_axes(
        axes,
        title=f"d  …{'yet' if _norm_grows(curves) else 'and'} a descent step {effect} $p_k$",
        x="probability $p_k$ of the target",
        y="change of $p_k$  / step size",
    )
    _draw_at_target(axes, [(curve, curve.p_change) for curve in curves.at_target])


def _norm_grows(curves: GradientCurves) -> bool:
    above = curves.at_target[-1]
    return above.norm[-1] > above.norm[0]


def _draw_at_target(axes: Axes, lines: list[tuple[TargetCurves, list[float]]]) -> None:
    axes.axhline(0, color=GREY, linewidth=0.8)
    for (curve, values), colour in zip(lines, (GREEN, INK, PURPLE), strict=True):
        label = f"UL, $p_\\mathrm{{neg}} = {curve.p_negative:.3g}$"
        axes.plot(curve.p_target, values, color=colour, linewidth=2.4, label=label)
    lowest = min(min(values) for _, values in lines)
    axes.margins(y=0.08)
    axes.set(xlim=(0, 1), ylim=(0 if lowest > 0 else None, None))
    axes.legend(frameon=False, labelcolor=INK, fontsize=9.5, loc="best", reverse=True)
