"""Checks of the losses on hidden states: padding, chunks, the gradients of the head."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch.nn import functional as F

from tests.case import Case
from tests.ops.kernel_cases import DTYPES, Objectives, make_case, on, upstream_of, within

WIDTH = 16


def linear(device: str, objectives: Objectives) -> None:
    """A vocabulary that is padded and one that is not, bias, two chunks, a mean and rows of their own upstream.

    Hidden states of ignored targets are NaN throughout.
    """
    from scalegrad.ops import triton_linear

    triton_linear.CHUNK_BYTES, triton_linear.CHUNK_ROWS = 1, 128
    for objective in objectives:
        for i, vocab in enumerate((61, 64)):
            case = make_case(objective, vocab, steps=80, ignored=0.85, kinds="segments", edges=(7, 20))
            for reduction in ("mean", "none"):
                verify_linear(f"{objective} {reduction}", case, DTYPES[i], device, reduction, bias=vocab == 61)
        wide = make_case(objective, 61, steps=80, kinds="segments", edges=(7, 20))
        verify_linear(f"{objective} wide", wide, torch.bfloat16, device, "mean", bias=False, accum_dtype=torch.float32)
    head = make_case("SG", 61, rows=1, steps=5, softcap=10.0, label_smoothing=0.1)
    verify_linear("SG head", head, torch.float16, device, "mean", bias=True)
    for learns in ("hidden states", "weight", "bias"):
        verify_linear("UL a frozen part", make_case("UL", 61), torch.float32, device, "mean", bias=True, learns=learns)
    for objective in ("SG", "UL"):
        verify_linear("no rows", make_case(objective, 61, steps=0), torch.float32, device, "mean", bias=True)
        verify_linear("all ignored", make_case(objective, 61, ignored=1.0), torch.float32, device, "mean", bias=True)


def verify_linear(
    what: str, case: Case, dtype: torch.dtype, device: str, reduction: str, bias: bool, learns: str = "", **more
) -> None:
    """Loss and gradients: what plain torch's cross-entropy errs by on the same head is the measure of ours."""
    rows, steps, vocab = case.logits.shape
    what = f"{what} {str(dtype).removeprefix('torch.')} {[rows, steps, vocab]}"
    random = torch.Generator().manual_seed(1)
    shapes = {"hidden states": (rows, steps, WIDTH), "weight": (vocab, WIDTH), **({"bias": (vocab,)} if bias else {})}
    head = {name: (torch.randn(shape, generator=random) / 2).to(dtype) for name, shape in shapes.items()}
    kept = case.targets >= 0
    upstream = torch.full((rows, steps), 3 / max(1, int(kept.sum()))) if reduction == "mean" else upstream_of(case)

    given = {**head, "hidden states": head["hidden states"].masked_fill(~kept[..., None], math.nan)}
    leaves = {k: v.clone().to(device).requires_grad_(learns in ("", k)) for k, v in given.items()}
    loss = on(device, case).run_linear(
        leaves["hidden states"], leaves["weight"], "triton", reduction=reduction, bias=leaves.get("bias"), **more
    )
    loss.backward(torch.tensor(3.0, device=device) if reduction == "mean" else upstream.to(device))

    exact_loss, exact = exact_gradients(case, head, upstream)
    plain_loss_error, plain_errors = plain_torch(case, head, upstream)
    expected = (exact_loss * upstream.double()).sum() / 3 if reduction == "mean" else exact_loss
    ulp = torch.finfo(dtype).eps
    scale = max(1.0, float(exact_loss.abs().max())) if exact_loss.numel() else 1.0
    within(f"{what}: loss", loss, expected, 1.05 * plain_loss_error + ulp * scale)
    for name, leaf in leaves.items():
        if not leaf.requires_grad:
            continue
        plain = plain_errors[name]
        bound = {"hidden states": 1.05 * plain + ulp, "weight": max(2 * plain, ulp), "bias": 2 * plain + ulp}[name]
        bound = 1.05 * plain + ulp / 2 if more else bound  # summed in float32: no worse than plain torch
        error = relative(leaf.grad, exact[name])
        assert error <= bound, f"{what}: the gradient of the {name} errs {error:.3g}, and may by {bound:.3g}"


def exact_gradients(
    case: Case, head: dict[str, torch.Tensor], upstream: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Losses and gradients in float64."""
    wide = {name: value.double() for name, value in head.items()}
    loss, grad, *_ = case.expected(F.linear(*wide.values()))
    grad = grad * upstream.double()[..., None]
    flat = grad.flatten(0, 1)
    d_weight = flat.T @ wide["hidden states"].flatten(0, 1)
    return loss, {"hidden states": grad @ wide["weight"], "weight": d_weight, "bias": flat.sum(0)}


def plain_torch(case: Case, head: dict[str, torch.Tensor], upstream: torch.Tensor) -> tuple[float, dict[str, float]]:
    """Largest error of the loss and relative errors of the gradients of `F.cross_entropy(F.linear(...))`."""
    mle = replace(case, objective="scale_grad", strength=torch.ones_like(case.strength), settings={})
    exact_loss, exact = exact_gradients(mle, head, upstream)
    leaves = {name: value.clone().requires_grad_() for name, value in head.items()}
    logits = F.linear(*leaves.values()).flatten(0, 1)
    loss = F.cross_entropy(logits.float(), case.targets.flatten(), reduction="none").view_as(exact_loss)
    loss.backward(upstream)
    error = float((loss.detach().double() - exact_loss).abs().max()) if loss.numel() else 0.0
    return error, {name: relative(leaf.grad, exact[name]) for name, leaf in leaves.items()}


def relative(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """‖error‖ / ‖exact‖; NaN stays NaN, and is beyond any bound."""
    error = float((actual.double().cpu() - exact).norm())
    return error / float(exact.norm()) if exact.any() else error
