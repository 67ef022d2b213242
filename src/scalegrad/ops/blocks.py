"""The arithmetic of one block of rows: log-sum-exp once, then only the discouraged tokens.

The two losses take logits `o` [b, V], a buffer `z` [b, V] (which may be the same memory) and the discouraged tokens of
the rows as `ids` [b, W] with `inside` [b, W], and leave the gradient with respect to `o` in `z`. Columns are [b, 1].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Listed(NamedTuple):
    """The tokens listed for each row of a block; with `complement` the discouraged ones are all the others."""

    ids: Tensor  # [b, W] int64, a valid id even where not inside
    inside: Tensor  # [b, W] bool
    complement: bool

    def take(self, z: Tensor) -> Tensor:
        """[b, W] the listed entries of z, which become 0 there. 0 where not inside."""
        values = z.gather(1, self.ids).masked_fill_(~self.inside, 0.0)
        z.scatter_add_(1, self.ids, -values)  # x − x is exactly 0, and a hole adds 0
        return values

    def put(self, z: Tensor, values: Tensor) -> None:
        """Add the values, 0 where not inside, at the listed entries."""
        z.scatter_add_(1, self.ids, values)

    def has(self, target: Tensor) -> Tensor:
        """[b, 1] is the target discouraged?"""
        listed = ((self.ids == target) & self.inside).any(1, keepdim=True)
        return ~listed if self.complement else listed


class BlockLosses(NamedTuple):
    """Columns [b, 1]."""

    loss: Tensor
    nll: Tensor
    seen_mass: Tensor
    target_seen: Tensor


def scale_grad(
    o: Tensor, z: Tensor, target: Tensor, gamma: Tensor, weight: Tensor, listed: Listed, smoothing: float
) -> BlockLosses:
    """Eq. 4–6. With masses n (novel) and c (discouraged): p̃ = γ·p / (γ·n + c) or p / (γ·n + c), gradient p̃ − 1[k]."""
    target_seen = listed.has(target)
    top = o.amax(1, keepdim=True)
    to_target = top - o.gather(1, target)
    to_mean = top - o.mean(1, keepdim=True) if smoothing else None

    torch.sub(o, top, out=z).exp_()
    in_list = listed.take(z)
    list_mass, rest_mass = in_list.sum(1, keepdim=True), z.sum(1, keepdim=True)  # no sum ever cancels
    one = torch.ones_like(gamma)
    list_scale, rest_scale = (gamma, one) if listed.complement else (one, gamma)
    total = list_scale * list_mass + rest_scale * rest_mass

    loss = to_target + total.log() - torch.where(target_seen, 0.0, gamma.log())
    if to_mean is not None:
        share = listed.inside.sum(1, keepdim=True, dtype=o.dtype) / o.shape[1]
        novel_share = share if listed.complement else 1 - share
        loss = (1 - smoothing) * loss + smoothing * (to_mean + total.log() - novel_share * gamma.log())

    z.mul_(rest_scale / total * weight)
    listed.put(z, in_list * (list_scale / total * weight))
    _subtract_target(z, target, weight, smoothing)
    mass = list_mass + rest_mass
    seen_mass = (rest_mass if listed.complement else list_mass) / mass
    return BlockLosses(loss, to_target + mass.log(), seen_mass, target_seen)


def unlikelihood(
    o: Tensor, z: Tensor, target: Tensor, alpha: Tensor, weight: Tensor, listed: Listed, smoothing: float
) -> BlockLosses:
    """Eq. 2 and 7, exact near p = 1. With r = p/(1 − p) and R = Σ_{C∖{k}} r: gradient p·(1 − αR) + α·r·1[C∖{k}] − 1[k].

    Only the largest p can pass ½. It is kept apart as `top`, everything else is measured against the sum of the others.
    """
    target_seen = listed.has(target)
    high, top = o.max(1, keepdim=True)
    to_target = high - o.gather(1, target)
    to_mean = high - o.mean(1, keepdim=True) if smoothing else None

    torch.sub(o, high, out=z)
    z.scatter_(1, top, -torch.inf)
    gap = z.amax(1, keepdim=True)  # ≤ 0: how far the second stands below the first
    gap = torch.where(gap.isneginf(), 0.0, gap)
    z.sub_(gap).exp_()
    others = z.sum(1, keepdim=True)  # Σ_{j ≠ top} exp(o_j − o_second)
    log_sum = torch.log1p(others * gap.exp())  # log Σ exp(o − o_top)
    p_top = torch.exp(-log_sum)
    log_1_minus_p_top = gap + others.log() - log_sum

    negatives = listed._replace(inside=listed.inside & (listed.ids != target))
    top_is_negative = (negatives.inside & (negatives.ids == top)).any(1, keepdim=True)
    to_p = torch.exp(gap - log_sum)  # z · to_p = p
    p = z.gather(1, listed.ids) * to_p  # [b, W], 0 at the top
    seen_mass = p.masked_fill(~listed.inside, 0.0).sum(1, keepdim=True)
    seen_mass += torch.where((listed.inside & (listed.ids == top)).any(1, keepdim=True), p_top, 0.0)
    p.masked_fill_(~negatives.inside, 0.0)  # now ≤ ½: log1p and r are exact
    r = p / (1 - p)
    penalty = -torch.log1p(-p).sum(1, keepdim=True) - torch.where(top_is_negative, log_1_minus_p_top, 0.0)

    nll = to_target + log_sum
    likelihood = nll if to_mean is None else (1 - smoothing) * nll + smoothing * (to_mean + log_sum)
    bystander = 1 - alpha * r.sum(1, keepdim=True)  # 1 − αR without the top's r
    push = torch.where(top_is_negative, alpha * p_top, 0.0)  # p_j · α · r_top = push · z_j / others
    z.mul_((to_p * bystander - push / others.clamp(min=torch.finfo(z.dtype).tiny)) * weight)
    z.scatter_(1, top, (p_top * bystander + push) * weight)
    negatives.put(z, alpha * r * weight)
    _subtract_target(z, target, weight, smoothing)
    return BlockLosses(likelihood + alpha * penalty, nll, seen_mass, target_seen)


def _subtract_target(z: Tensor, target: Tensor, weight: Tensor, smoothing: float) -> None:
    """The −q of the gradient: −1 at the target, or −(1 − ε) there and −ε/V everywhere."""
    if smoothing:
        z.sub_(weight * (smoothing / z.shape[1]))
    z.scatter_add_(1, target, -(1 - smoothing) * weight)


def entropy(o: Tensor, z: Tensor, listed: Listed) -> tuple[Tensor, Tensor]:
    """Entropy of p in nats and the discouraged mass, [b, 1] each: what a dynamic γ may look at."""
    top = o.amax(1, keepdim=True)
    torch.sub(o, top, out=z)
    shifted = z.clone()
    mass = z.exp_().sum(1, keepdim=True)
    mean = (z * shifted.masked_fill_(shifted.isneginf(), 0.0)).sum(1, keepdim=True) / mass
    in_list = listed.take(z)
    rest = z.sum(1, keepdim=True)
    return mass.log() - mean, (rest if listed.complement else in_list.sum(1, keepdim=True)) / mass
