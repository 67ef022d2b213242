"""The equations as the paper writes them, dense and differentiable: the twin that every fast path must agree with."""

from __future__ import annotations

import torch
from torch import Tensor

from scalegrad.ops.rows import Losses, Objective, Rows, head_logits


def losses(logits: Tensor, rows: Rows, discouraged: Tensor, objective: Objective) -> Losses:
    """Any objective on any set: `logits` [N, V], `discouraged` [N, V] bool. Gradients come from autograd."""
    kept = rows.targets >= 0
    # An ignored row may hold anything, NaN included: replace it before it can reach a sum.
    logits = head_logits(logits.masked_fill(~kept[:, None], 0.0), objective)
    target = rows.targets.clamp(min=0)[:, None]  # [N, 1]
    log_p = logits.log_softmax(1)

    if objective.name == "scale_grad":
        per_token = _scale_grad(log_p, discouraged, rows.strength[:, None])
        loss = _cross_entropy(per_token, target, objective.label_smoothing)
    else:
        likelihood = _cross_entropy(log_p, target, objective.label_smoothing)
        loss = likelihood + rows.strength * _unlikelihood(logits, log_p, discouraged, target)

    with torch.no_grad():
        nll = -log_p.gather(1, target)[:, 0]
        seen_mass = log_p.exp().masked_fill(~discouraged, 0.0).sum(1)
        target_seen = discouraged.gather(1, target)[:, 0] & kept
    zero = loss.new_zeros(())
    return Losses(torch.where(kept, loss, zero), torch.where(kept, nll, zero), seen_mass * kept, target_seen)


def _scale_grad(log_p: Tensor, discouraged: Tensor, gamma: Tensor) -> Tensor:
    """Eq. 4: log p̃, where the probability of every token that is not discouraged is multiplied by γ, renormalised."""
    scaled = log_p + torch.where(discouraged, 0.0, gamma.log())
    return scaled.log_softmax(1)


def _cross_entropy(log_p: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Eq. 5: −log p̃_k; with smoothing, H(q, p̃) for q = (1 − ε)·1[k] + ε/V."""
    loss = -log_p.gather(1, target)[:, 0]
    return loss if smoothing == 0 else (1 - smoothing) * loss - smoothing * log_p.mean(1)


def _unlikelihood(logits: Tensor, log_p: Tensor, discouraged: Tensor, target: Tensor) -> Tensor:
    """Eq. 2's second term, −Σ_{c ∈ C∖{k}} log(1 − p_c).

    Only the largest p can pass ½. For that one, 1 − p is the share of the others: p_j = (1 − p_top) · softmax(others)_j
    for any other j, here the second largest, which stays exact near p_top = 1 and at any size of the logits.
    """
    if logits.shape[1] == 1:
        return logits.new_zeros(len(logits))
    negative = discouraged.scatter(1, target, False)
    is_top = torch.zeros_like(negative).scatter(1, logits.argmax(1, keepdim=True), True)
    others = logits.masked_fill(is_top, -torch.inf)
    second = others.argmax(1, keepdim=True)
    log_share = log_p.gather(1, second) - others.log_softmax(1).gather(1, second)
    small = torch.log1p(-log_p.exp().masked_fill(is_top | ~negative, 0.0))
    return -(torch.where(is_top, log_share, small).masked_fill(~negative, 0.0)).sum(1)
