"""Autograd around the implementations that make the gradient in the forward pass.

Each stands behind an operator with flat tensors, so that a compiled graph sees one node; `Logits` and `Linear` are the
autograd functions that call them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from scalegrad.ops import chunked, sparse
from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.sets import Members

Outputs = tuple[Tensor, Tensor, Tensor, Tensor]  # the fields of Losses; the first may be their weighted total
Settings = tuple[bool, bool, str, float, float | None, float | None]


def _implementation(name: str) -> Any:
    """The module whose `fill` runs; those with kernels load when used, for Triton may not be there."""
    if name == "triton":
        from scalegrad.ops import triton_logits

        return triton_logits
    if name == "triton linear":
        from scalegrad.ops import triton_linear

        return triton_linear
    return sparse if name == "sparse" else chunked


def settings(members: Members, objective: Objective) -> Settings:
    """What is not a tensor, flat, as the operators take it."""
    return (
        members.complement,
        members.own_lines,
        objective.name,
        objective.label_smoothing,
        objective.softcap,
        objective.logit_scale,
    )


def tensors(rows: Rows, members: Members) -> list[Tensor]:
    """What is one, flat."""
    return [*rows, members.ids, members.line, members.begin, members.end]


def _unflatten(
    flat: list[Tensor], complement: bool, own_lines: bool, name: str, *numbers: Any
) -> tuple[Rows, Members, Objective]:
    return Rows(*flat[:3]), Members(*flat[3:7], complement, own_lines), Objective(name, *numbers)  # type: ignore


# ---- operators -------------------------------------------------------------------------------------------------------


@torch.library.custom_op("scalegrad::rows", mutates_args=())
def _rows(
    impl: str,
    logits: Tensor,
    flat: list[Tensor],
    complement: bool,
    own_lines: bool,
    objective: str,
    label_smoothing: float,
    softcap: float | None,
    logit_scale: float | None,
    want_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    grad = torch.empty_like(logits) if want_grad else None
    call = _unflatten(flat, complement, own_lines, objective, label_smoothing, softcap, logit_scale)
    losses = _implementation(impl).fill(logits, grad, *call)
    return *losses, logits.new_empty(0) if grad is None else grad


@_rows.register_fake
def _(impl, logits, flat, *settings, **named):  # type: ignore[no-untyped-def]
    want_grad = named["want_grad"] if "want_grad" in named else settings[-1]
    return *_fake_losses(logits), torch.empty_like(logits) if want_grad else logits.new_empty(0)


@torch.library.custom_op("scalegrad::rows_", mutates_args=("logits",))
def _rows_inplace(
    impl: str,
    logits: Tensor,
    flat: list[Tensor],
    complement: bool,
    own_lines: bool,
    objective: str,
    label_smoothing: float,
    softcap: float | None,
    logit_scale: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    call = _unflatten(flat, complement, own_lines, objective, label_smoothing, softcap, logit_scale)
    loss, nll, seen_mass, target_seen = _implementation(impl).fill(logits, logits, *call)
    return loss, nll, seen_mass, target_seen


@_rows_inplace.register_fake
def _(impl, logits, *_, **__):  # type: ignore[no-untyped-def]
    return tuple(_fake_losses(logits))


@torch.library.custom_op("scalegrad::linear_rows", mutates_args=())
def _linear_rows(
    impl: str,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    flat: list[Tensor],
    complement: bool,
    own_lines: bool,
    objective: str,
    label_smoothing: float,
    softcap: float | None,
    logit_scale: float | None,
    wanted: list[bool],
    accumulate_in_float32: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = _unflatten(flat, complement, own_lines, objective, label_smoothing, softcap, logit_scale)
    losses, grads = _implementation(impl).fill(
        hidden, weight, bias, *call, (wanted[0], wanted[1], wanted[2]), accumulate_in_float32
    )
    return *losses, *(hidden.new_empty(0) if grad is None else grad for grad in grads)


@_linear_rows.register_fake
def _(impl, hidden, weight, bias, flat, *settings, **named):  # type: ignore[no-untyped-def]
    wanted = named["wanted"] if "wanted" in named else settings[6]  # after those of `settings()`
    inputs = zip((hidden, weight, bias), wanted, strict=True)
    grads = [torch.empty_like(x) if want and x is not None else hidden.new_empty(0) for x, want in inputs]
    return *_fake_losses(hidden), *grads


@torch.library.custom_op("scalegrad::statistics", mutates_args=())
def _statistics(
    values: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    flat: list[Tensor],
    complement: bool,
    own_lines: bool,
    objective: str,
    label_smoothing: float,
    softcap: float | None,
    logit_scale: float | None,
) -> tuple[Tensor, Tensor]:
    rows, members, settings = _unflatten(flat, complement, own_lines, objective, label_smoothing, softcap, logit_scale)
    if weight is None:
        return sparse.statistics(values, rows.targets, members, settings)
    return chunked.statistics(values, weight, bias, rows.targets, members, settings)


@_statistics.register_fake
def _(values, *_, **__):  # type: ignore[no-untyped-def]
    losses = _fake_losses(values)
    return losses.loss, losses.seen_mass


def statistics(
    values: Tensor, weight: Tensor | None, bias: Tensor | None, targets: Tensor, members: Members, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Entropy and discouraged mass of each row, [N] each, from logits, or from hidden states and a weight."""
    nothing = targets.new_empty(0)  # strength and weight play no part
    flat = tensors(Rows(targets, nothing, nothing), members)
    with torch.autocast(values.device.type, enabled=False):
        result: tuple[Tensor, Tensor] = _statistics(values, weight, bias, flat, *settings(members, objective))
    return result


def _fake_losses(like: Tensor) -> Losses:
    def column(dtype: torch.dtype) -> Tensor:
        return like.new_empty(like.shape[0], dtype=dtype)

    dtype = torch.promote_types(like.dtype, torch.float32)
    return Losses(column(dtype), column(dtype), column(dtype), column(torch.bool))


# ---- autograd --------------------------------------------------------------------------------------------------------


class Logits(torch.autograd.Function):
    """The weighted total (`total`) or the loss of each row, from logits [N, V]."""

    @staticmethod
    def forward(
        ctx: Any, impl: str, logits: Tensor, total: bool, inplace: bool, settings: Settings, *flat: Tensor
    ) -> Outputs:
        ctx.impl = impl
        want_grad = ctx.needs_input_grad[1]
        # A compiled graph plans its memory itself. On a GPU it also pads odd vocabularies, and what it then hands to an
        # operator that mutates its argument are other rows than the logits' (torch 2.11).
        if inplace and want_grad and not torch.compiler.is_compiling():
            losses = Losses(*_rows_inplace(impl, logits, list(flat), *settings))
            grad = logits
        else:
            *columns, grad = _rows(impl, logits, list(flat), *settings, want_grad)
            losses = Losses(*columns)
        ctx.save_for_backward(grad)
        return _outputs(ctx, losses, flat[2] if total else None)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        _refuse_create_graph()
        (grad,) = ctx.saved_tensors
        return None, _scaled(ctx.impl, grad, upstream), *[None] * 10


class Linear(torch.autograd.Function):
    """The same from hidden states [N, D] and the head's weight [V, D] and bias [V]."""

    @staticmethod
    def forward(
        ctx: Any,
        impl: str,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        total: bool,
        accumulate_in_float32: bool,
        settings: Settings,
        *flat: Tensor,
    ) -> Outputs:
        wanted = list(ctx.needs_input_grad[1:4])
        ctx.impl, ctx.total, ctx.settings, ctx.wanted = impl, total, settings, wanted
        ctx.accumulate_in_float32 = accumulate_in_float32
        *columns, d_hidden, d_weight, d_bias = _linear_rows(
            impl, hidden, weight, bias, list(flat), *settings, wanted if total else [False] * 3, accumulate_in_float32
        )
        # A row's own upstream gradient is not known yet: then the logits are made again in the backward pass.
        ctx.save_for_backward(*((d_hidden, d_weight, d_bias) if total else (hidden, weight, bias, *flat)))
        return _outputs(ctx, Losses(*columns), flat[2] if total else None)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        _refuse_create_graph()
        if ctx.total:
            grads = [
                _scaled(ctx.impl, grad, upstream) if want else None
                for grad, want in zip(ctx.saved_tensors, ctx.wanted, strict=True)
            ]
        else:
            hidden, weight, bias, targets, strength, _weight, *members = ctx.saved_tensors
            flat = [targets, strength, upstream.to(strength.dtype), *members]
            with torch.autocast(hidden.device.type, enabled=False):
                *_losses, d_hidden, d_weight, d_bias = _linear_rows(
                    ctx.impl, hidden, weight, bias, flat, *ctx.settings, ctx.wanted, ctx.accumulate_in_float32
                )
            made = zip((d_hidden, d_weight, d_bias), ctx.wanted, strict=True)
            grads = [grad if want else None for grad, want in made]
        return None, *grads, *[None] * 10


def _outputs(ctx: Any, losses: Losses, weight: Tensor | None) -> Outputs:
    ctx.mark_non_differentiable(*losses[1:])
    return (losses.loss if weight is None else (losses.loss * weight).sum()), *losses[1:]


def _refuse_create_graph() -> None:
    """The gradient was made in the forward pass: a derivative of it would silently be 0."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a compiled graph raises by itself
        raise RuntimeError("create_graph=True needs a second derivative, which only impl='reference' has")


def _scaled(impl: str, grad: Tensor, upstream: Tensor) -> Tensor:
    """`grad` times the upstream gradient, a number or one for each row; in its own memory unless the graph is kept."""
    factor = upstream.view(-1, *[1] * (grad.dim() - 1))  # not a scalar: that is rounded to half precision first
    if torch.compiler.is_compiling() or _graph_is_kept():
        return grad.clone().mul_(factor)
    if upstream.dim() == 0 and upstream.device.type == "cpu" and upstream.item() == 1:
        return grad
    if impl.startswith("triton") and grad.is_contiguous():
        scaled: Tensor = _implementation("triton").scale_(grad, upstream)
        return scaled
    return grad.mul_(factor)


def _graph_is_kept() -> bool:
    """Was backward called with retain_graph=True? If torch does not say, assume so: a copy is always right."""
    ask = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return True if ask is None else bool(ask())
