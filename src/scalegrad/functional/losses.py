"""The four losses. The docstrings carry the equations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import torch
from torch import Tensor

from scalegrad.functional.inputs import (
    SEEN,
    Batch,
    Options,
    Reduction,
    Sequences,
    check_linear,
    check_local,
    check_logits,
    may_sync,
    read_sequences,
)
from scalegrad.gamma import Gamma, RewardRepetition, Schedule, at_step, check_alpha, check_gamma, check_gamma_tensor
from scalegrad.ops import dispatch
from scalegrad.ops.dispatch import Call, Impl, Linear, Logits
from scalegrad.ops.rows import Objective, Rows
from scalegrad.sets import Ids, TokenSet


class Parts(NamedTuple):
    """What a loss saw on the way, for logging: detached, [..., T], 0 at ignored targets."""

    nll: Tensor  # −log p_k, whatever the objective
    seen_mass: Tensor  # π, the probability of all discouraged tokens together
    target_seen: Tensor  # bool: is the target itself discouraged?
    has_target: Tensor  # bool: False where the target is ignored

    def perplexity(self) -> Tensor:
        """exp of the mean NLL over the targets that are not ignored, a 0-d tensor; NaN if all of them are.

        >>> targets = torch.tensor([[0, 1, -100]])
        >>> _, parts = scale_grad(torch.zeros(1, 3, 4), targets, return_parts=True)  # four equally likely tokens
        >>> parts.perplexity()
        tensor(4.)
        """
        return (self.nll.sum() / self.has_target.sum()).exp()


Loss: TypeAlias = Tensor | tuple[Tensor, Parts]
"""A tensor, or `(tensor, Parts)` with `return_parts=True`."""

_NOTHING = Ids([])


# fmt: off
@overload
def scale_grad(
    logits: Tensor, targets: Tensor, gamma: Gamma = 0.2, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, inplace: bool = False,
    return_parts: Literal[False] = False,
) -> Tensor: ...
@overload
def scale_grad(
    logits: Tensor, targets: Tensor, gamma: Gamma = 0.2, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, inplace: bool = False,
    return_parts: Literal[True],
) -> tuple[Tensor, Parts]: ...
# fmt: on
def scale_grad(
    logits: Tensor,
    targets: Tensor,
    gamma: Gamma = 0.2,
    *,
    discourage: TokenSet = SEEN,
    context: Tensor | None = None,
    source: Tensor | None = None,
    segments: Tensor | None = None,
    num_items: int | Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    softcap: float | None = None,
    logit_scale: float | None = None,
    impl: Impl = "auto",
    check: bool = False,
    inplace: bool = False,
    return_parts: bool = False,
) -> Loss:
    """ScaleGrad (Eq. 4–5): `cross_entropy(logits + log(1/γ) · discouraged, targets)`, without ever building the mask.

    The probability of every token outside C_t is multiplied by γ, the distribution renormalised, and the loss is
    −log p̃_k = CE + log(1 + (1/γ − 1)·π) − 1[k ∈ C]·log(1/γ), π being the mass on C_t. The gradient is p̃ − 1[k] (Eq. 6).
    γ = 1 is plain cross-entropy. Labels are not shifted: `logits[..., t, :]` predicts `targets[..., t]`.

    Args:
        logits: [..., T, V]; each leading index is a sequence, seen tokens never cross them. One sequence is [1, T, V]:
            without a leading index, only `segments` say where a sequence ends.
        targets: [..., T] token ids.
        gamma: in (0, 1], smaller pushes harder; a number, a tensor [..., T], or a callable of (position, entropy,
            seen mass). A schedule over steps needs `ScaleGradLoss`, which knows the step.
        context: [..., T] input ids, each counting as seen from the step that reads it, in place of the targets;
            negative ids count for nothing.
        source: [..., S] ids seen from the first step (an encoder's input).
        segments: [..., T] document of each position in packed rows: where the id changes, nothing is seen any more.
        num_items: what "mean" divides by, in place of the number of targets kept: an int or a 0-d tensor. 0 is
            refused while targets are left; as a tensor on a GPU, where looking would wait, it makes the loss infinite.
        discourage: C_t, the tokens to discourage; by default the paper's, all that were seen.
        ignore_index: targets with this value are left out of loss and history.
        label_smoothing: ε of q = (1 − ε)·1[k] + ε/V, as in torch.
        reduction: "mean" over the targets kept (or `num_items`), "sum", or "none": [..., T], 0 at ignored targets.
        softcap: c of c·tanh(o/c) on the logits, as Gemma models use.
        logit_scale: a factor on the logits (before the cap), as Cohere models use.
        impl: "auto", or one by name: "reference", "sparse" (logits), "chunked" (linear), "triton".
        check: also look at values that cost a look: NaN logits, and everything on a GPU.
        inplace: the gradient may overwrite the logits (in a compiled graph it has no effect).
        return_parts: return `(loss, Parts)`.

    >>> import torch
    >>> logits, targets = torch.zeros(1, 3, 4), torch.tensor([[0, 1, 0]])
    >>> scale_grad(logits, targets, gamma=0.5, reduction="none")  # log 4, log 5, and log 3: token 0 was seen
    tensor([[1.3863, 1.6094, 1.0986]])
    """
    options = Options(
        discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check, return_parts
    )
    batch = Batch(targets, context, source, segments, num_items)
    return scale_grad_loss(check_logits(logits, inplace), batch, gamma, options)


# fmt: off
@overload
def unlikelihood(
    logits: Tensor, targets: Tensor, alpha: float = 1.0, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, inplace: bool = False,
    return_parts: Literal[False] = False,
) -> Tensor: ...
@overload
def unlikelihood(
    logits: Tensor, targets: Tensor, alpha: float = 1.0, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, inplace: bool = False,
    return_parts: Literal[True],
) -> tuple[Tensor, Parts]: ...
# fmt: on
def unlikelihood(
    logits: Tensor,
    targets: Tensor,
    alpha: float = 1.0,
    *,
    discourage: TokenSet = SEEN,
    context: Tensor | None = None,
    source: Tensor | None = None,
    segments: Tensor | None = None,
    num_items: int | Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    softcap: float | None = None,
    logit_scale: float | None = None,
    impl: Impl = "auto",
    check: bool = False,
    inplace: bool = False,
    return_parts: bool = False,
) -> Loss:
    """Token-level unlikelihood (Eq. 2): `cross_entropy − α · Σ_{c ∈ C∖{k}} log(1 − p_c)`.

    The gradient is p·(1 − αR) + α·r·1[C∖{k}] − 1[k] with r = p/(1 − p) and R its sum over C∖{k}, exact as p_c → 1.
    α = 0 is plain cross-entropy, α ≥ 0. Arguments as for `scale_grad`; label smoothing is of the likelihood term only.

    >>> import torch
    >>> logits, targets = torch.zeros(1, 3, 4), torch.tensor([[0, 1, 0]])
    >>> unlikelihood(logits, targets, alpha=1.0, reduction="none")  # log 4, then + log 4/3: one token was seen
    tensor([[1.3863, 1.6740, 1.6740]])
    """
    options = Options(
        discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check, return_parts
    )
    batch = Batch(targets, context, source, segments, num_items)
    return unlikelihood_loss(check_logits(logits, inplace), batch, alpha, options)


# fmt: off
@overload
def linear_scale_grad(
    hidden: Tensor, weight: Tensor, targets: Tensor, gamma: Gamma = 0.2, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, bias: Tensor | None = None, accum_dtype: torch.dtype | None = None,
    return_parts: Literal[False] = False,
) -> Tensor: ...
@overload
def linear_scale_grad(
    hidden: Tensor, weight: Tensor, targets: Tensor, gamma: Gamma = 0.2, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, bias: Tensor | None = None, accum_dtype: torch.dtype | None = None,
    return_parts: Literal[True],
) -> tuple[Tensor, Parts]: ...
# fmt: on
def linear_scale_grad(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    gamma: Gamma = 0.2,
    *,
    discourage: TokenSet = SEEN,
    context: Tensor | None = None,
    source: Tensor | None = None,
    segments: Tensor | None = None,
    num_items: int | Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    softcap: float | None = None,
    logit_scale: float | None = None,
    impl: Impl = "auto",
    check: bool = False,
    bias: Tensor | None = None,
    accum_dtype: torch.dtype | None = None,
    return_parts: bool = False,
) -> Loss:
    """`scale_grad(F.linear(hidden, weight, bias), targets, gamma)`, the [N, V] logits never whole in memory.

    Args:
        hidden: [..., T, D] what goes into the output layer.
        weight: [V, D] of the output layer; tied embeddings are fine.
        targets: [..., T] token ids. The rest as for `scale_grad`.
        bias: [V] of the output layer.
        accum_dtype: in which the parts of the weight's gradient are summed. None: float32, but on a GPU's kernels the
            weight's own, which errs by up to twice what plain torch does and costs no memory; torch.float32: always.

    >>> import torch
    >>> hidden, head = torch.eye(4)[None, :3], torch.zeros(4, 4)
    >>> linear_scale_grad(hidden, head, torch.tensor([[0, 1, 0]]), gamma=0.5, reduction="sum")  # log 4 + log 5 + log 3
    tensor(4.0943)
    """
    options = Options(
        discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check, return_parts
    )
    batch = Batch(targets, context, source, segments, num_items)
    return scale_grad_loss(check_linear(hidden, weight, bias, accum_dtype), batch, gamma, options)


# fmt: off
@overload
def linear_unlikelihood(
    hidden: Tensor, weight: Tensor, targets: Tensor, alpha: float = 1.0, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, bias: Tensor | None = None, accum_dtype: torch.dtype | None = None,
    return_parts: Literal[False] = False,
) -> Tensor: ...
@overload
def linear_unlikelihood(
    hidden: Tensor, weight: Tensor, targets: Tensor, alpha: float = 1.0, *, discourage: TokenSet = SEEN,
    context: Tensor | None = None, source: Tensor | None = None, segments: Tensor | None = None,
    num_items: int | Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: Reduction = "mean", softcap: float | None = None, logit_scale: float | None = None,
    impl: Impl = "auto", check: bool = False, bias: Tensor | None = None, accum_dtype: torch.dtype | None = None,
    return_parts: Literal[True],
) -> tuple[Tensor, Parts]: ...
# fmt: on
def linear_unlikelihood(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    alpha: float = 1.0,
    *,
    discourage: TokenSet = SEEN,
    context: Tensor | None = None,
    source: Tensor | None = None,
    segments: Tensor | None = None,
    num_items: int | Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    softcap: float | None = None,
    logit_scale: float | None = None,
    impl: Impl = "auto",
    check: bool = False,
    bias: Tensor | None = None,
    accum_dtype: torch.dtype | None = None,
    return_parts: bool = False,
) -> Loss:
    """`unlikelihood(F.linear(hidden, weight, bias), targets, alpha)`, the [N, V] logits never whole in memory.

    >>> import torch
    >>> hidden, head = torch.eye(4)[None, :3], torch.zeros(4, 4)
    >>> linear_unlikelihood(hidden, head, torch.tensor([[0, 1, 0]]), reduction="sum")  # 3 log 4 + 2 log 4/3
    tensor(4.7342)
    """
    options = Options(
        discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check, return_parts
    )
    batch = Batch(targets, context, source, segments, num_items)
    return unlikelihood_loss(check_linear(hidden, weight, bias, accum_dtype), batch, alpha, options)


# ---- what the four have in common, for `nn` too ----------------------------------------------------------------------


def scale_grad_loss(head: Logits | Linear, batch: Batch, gamma: Gamma, options: Options) -> Loss:
    """ScaleGrad on any head."""
    if isinstance(gamma, Schedule):
        gamma = at_step(gamma, None)
    sequences = read_sequences(head, batch, options)
    objective = Objective("scale_grad", options.label_smoothing, options.softcap, options.logit_scale)
    strength = _gamma(gamma, head, sequences, objective, options)
    options = _without_set(options) if isinstance(gamma, (int, float)) and gamma == 1 else options
    return _reduce(head, sequences, strength, batch.num_items, objective, options)


def unlikelihood_loss(head: Logits | Linear, batch: Batch, alpha: float, options: Options) -> Loss:
    """Unlikelihood on any head."""
    check_alpha(alpha)
    sequences = read_sequences(head, batch, options)
    objective = Objective("unlikelihood", options.label_smoothing, options.softcap, options.logit_scale)
    strength = _everywhere(float(alpha), head, sequences)
    options = _without_set(options) if alpha == 0 else options
    return _reduce(head, sequences, strength, batch.num_items, objective, options)


def _without_set(options: Options) -> Options:
    """At γ = 1 or α = 0 the set changes nothing but the parts: leave it out where these are not asked for."""
    return options if options.return_parts else replace(options, discourage=_NOTHING)


def _gamma(gamma: Any, head: Logits | Linear, sequences: Sequences, objective: Objective, options: Options) -> Tensor:
    """γ for each position, [R, T]."""
    targets = sequences.targets
    if callable(gamma) and not isinstance(gamma, Tensor):
        entropy, seen_mass = dispatch.statistics(
            head, options.discourage, sequences.history, targets.flatten(), objective
        )
        positions = sequences.history.positions
        gamma = torch.as_tensor(gamma(positions, entropy.view_as(targets), seen_mass.view_as(targets)))
        return check_gamma_tensor(gamma.to(targets.device), targets >= 0, may_sync(head, options))
    if isinstance(gamma, Tensor):
        check_local("gamma", gamma)
        kept = sequences.kept.view(sequences.shape)
        return check_gamma_tensor(gamma, kept, may_sync(head, options)).view_as(targets)
    value = gamma.value if isinstance(gamma, RewardRepetition) else check_gamma(gamma)
    return _everywhere(float(value), head, sequences)


def _everywhere(value: float, head: Logits | Linear, sequences: Sequences) -> Tensor:
    """[R, T] of one strength, in the dtype of the arithmetic."""
    targets = sequences.targets
    dtype = torch.promote_types(head[0].dtype, torch.float32)
    return torch.full(targets.shape, value, dtype=dtype, device=targets.device)


def _reduce(
    head: Logits | Linear,
    sequences: Sequences,
    strength: Tensor,
    num_items: int | Tensor | None,
    objective: Objective,
    options: Options,
) -> Loss:
    dtype, kept = torch.promote_types(head[0].dtype, torch.float32), sequences.kept
    weight = _row_weight(kept, dtype, num_items, options.reduction, may_sync(head, options))
    # A float16 gradient divided by the number of items vanishes before a GradScaler's factor can reach it: then the
    # rows are weighed outside, and the backward pass scales each by both at once.
    total = options.reduction != "none" and head[0].dtype != torch.float16
    rows = Rows(sequences.targets.flatten(), strength.flatten().to(dtype), weight if total else kept.to(dtype))
    call = Call(rows, options.discourage, sequences.history, objective, total)
    out = dispatch.run(head, call, options.impl)
    loss = out.loss
    if not total:
        loss = torch.where(kept, loss, 0.0)  # an upstream gradient of an ignored target stops here, NaN or not
        loss = loss.view(sequences.shape) if options.reduction == "none" else (loss * weight).sum()
    if not options.return_parts:
        return loss
    return loss, Parts(*(part.detach().view(sequences.shape) for part in (*out[1:], kept)))


def _row_weight(
    kept: Tensor, dtype: torch.dtype, num_items: float | Tensor | None, reduction: str, may_sync: bool
) -> Tensor:
    """[N] what each row counts for: 1, or 1/number of items; 0 where it is not `kept`."""
    if num_items is None:
        return kept / kept.sum(dtype=dtype).clamp_(min=1) if reduction == "mean" else kept.to(dtype)
    if reduction != "mean":
        raise ValueError(
            f"num_items is what reduction='mean' divides by; it has no meaning with reduction={reduction!r}"
        )
    if isinstance(num_items, Tensor):
        if num_items.dim() != 0:
            raise ValueError(f"num_items must be a number or a 0-d tensor, not of shape {list(num_items.shape)}")
        check_local("num_items", num_items)
        if not may_sync:  # of 0 items, a target weighs infinitely much, and an ignored one still nothing
            return torch.where(kept, num_items.to(kept.device, dtype).clamp(min=0).reciprocal(), 0.0)
        num_items = num_items.item()
    if isinstance(num_items, bool) or not isinstance(num_items, (int, float)) or not 0 <= num_items < math.inf:
        raise ValueError(f"num_items must be a finite number from 0 or a 0-d tensor, not {num_items!r}")
    if num_items == 0:  # rare enough to wait for a GPU
        if not torch.compiler.is_compiling() and bool(kept.any()):
            raise ValueError(
                "num_items must be the number of targets that the loss is divided by, not 0 with some left"
            )
        return kept.to(dtype).masked_fill(kept, math.inf)
    return kept.to(dtype) / num_items
