"""Logits in, no [T, V] mask anywhere: blocks of rows that stay in the cache, the gradient made in the same pass.

Pure torch, for any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.sets import Members

CPU_BLOCK = 1 << 21  # elements of logits at once, for each thread: small enough for a core's cache
DEVICE_BLOCK = 1 << 26


def fill(logits: Tensor, grad: Tensor | None, rows: Rows, members: Members, objective: Objective) -> Losses:
    """Losses of all rows; their gradient, scaled by `rows.weight`, goes to `grad`, which may be `logits` itself."""
    out = _empty_losses(logits)
    size = _block_rows(logits, members)
    work = _Workspace(logits, grad, objective, size)
    step = _scale_grad if objective.name == "scale_grad" else _unlikelihood
    for a, b, listed in _blocks(rows.targets, members, size):
        if listed is None:  # every row of this stretch is ignored
            work.clear(a, b)
            continue
        o, z = work.open(a, b)
        target = rows.targets[a:b, None]
        column = (target.clamp(min=0), rows.strength[a:b, None], rows.weight[a:b, None])
        result = step(o, z, *column, listed, objective.label_smoothing)
        work.close(a, b, o, z, ignored=target < 0)
        for whole, part in zip(out, result, strict=True):
            whole[a:b] = part[:, 0].masked_fill(target[:, 0] < 0, 0)
    return out


def statistics(logits: Tensor, targets: Tensor, members: Members, objective: Objective) -> tuple[Tensor, Tensor]:
    """Entropy and discouraged mass of each row, [N] each."""
    entropy, seen_mass, *_ = _empty_losses(logits)
    size = _block_rows(logits, members)
    work = _Workspace(logits, None, objective, size)
    for a, b, listed in _blocks(targets, members, size):
        if listed is not None:
            h, mass = _entropy(*work.open(a, b), listed)
            ignored = targets[a:b] < 0
            entropy[a:b], seen_mass[a:b] = h[:, 0].masked_fill(ignored, 0), mass[:, 0].masked_fill(ignored, 0)
    return entropy, seen_mass


def _empty_losses(logits: Tensor) -> Losses:
    zeros = torch.zeros(len(logits), dtype=torch.promote_types(logits.dtype, torch.float32), device=logits.device)
    return Losses(zeros, zeros.clone(), zeros.clone(), torch.zeros_like(zeros, dtype=torch.bool))


def _block_rows(logits: Tensor, members: Members) -> int:
    elements = CPU_BLOCK * torch.get_num_threads() if logits.device.type == "cpu" else DEVICE_BLOCK
    return max(1, elements // max(logits.shape[1], members.ids.shape[1], 1))


class _Workspace:
    """The memory of a block: where its logits are read in float32 and where its gradient is made."""

    def __init__(self, logits: Tensor, grad: Tensor | None, objective: Objective, rows: int) -> None:
        self.logits, self.grad, self.objective = logits, grad, objective
        dtype = torch.promote_types(logits.dtype, torch.float32)
        plain = objective.softcap is None and objective.logit_scale is None
        self.copies = logits.dtype != dtype or not plain
        self.direct = grad is not None and grad.dtype == dtype
        shape = (min(rows, len(logits)), logits.shape[1])
        empty = torch.empty(shape, dtype=dtype, device=logits.device)
        self.o = empty if self.copies else None
        # The soft cap's derivative needs the capped logits after the gradient: only then two buffers.
        shared = self.o if objective.softcap is None else None
        self.z = None if self.direct else (torch.empty_like(empty) if shared is None else shared)

    def open(self, a: int, b: int) -> tuple[Tensor, Tensor]:
        o = self.logits[a:b]
        if self.o is not None:
            o = self.o[: b - a].copy_(o)
            if self.objective.logit_scale is not None:
                o.mul_(self.objective.logit_scale)
            if self.objective.softcap is not None:
                o.div_(self.objective.softcap).tanh_().mul_(self.objective.softcap)
        if self.z is not None:
            return o, self.z[: b - a]
        assert self.grad is not None
        return o, self.grad[a:b]

    def close(self, a: int, b: int, o: Tensor, z: Tensor, ignored: Tensor) -> None:
        if self.grad is None:
            return
        if self.objective.softcap is not None:
            z.mul_(1 - (o / self.objective.softcap).square())
        if self.objective.logit_scale is not None:
            z.mul_(self.objective.logit_scale)
        if sync_stalls(z):  # else ignored rows never get this far
            z.masked_fill_(ignored, 0.0)
        if not self.direct:
            self.grad[a:b].copy_(z)

    def clear(self, a: int, b: int) -> None:
        if self.grad is not None:
            self.grad[a:b].zero_()


def _blocks(targets: Tensor, members: Members, size: int) -> Iterator[tuple[int, int, Listed | None]]:
    """Cut the rows into blocks (a, b) with the tokens listed for them; None where all of them are ignored."""
    n, next_use = len(targets), next_places(members.ids)
    if sync_stalls(targets):  # equal blocks
        for a in range(0, n, size):
            b = min(a + size, n)
            yield a, b, _listed(members, next_use, members.line[a:b], a, b, 0, members.ids.shape[1])
        return
    kept = targets >= 0
    change = kept[1:] != kept[:-1]
    if not members.own_lines:  # then a block reads one list
        change |= members.line[1:] != members.line[:-1]
    edges = [0, *(change.nonzero()[:, 0] + 1).tolist(), n] if n else []
    for start, stop in pairwise(edges):
        if not kept[start]:
            yield start, stop, None
            continue
        for a in range(start, stop, size):
            b = min(a + size, stop)
            low, high = int(members.begin[a:b].min()), int(members.end[a:b].max())
            lines = members.line[a:b] if members.own_lines else members.line[a : a + 1]
            yield a, b, _listed(members, next_use, lines, a, b, low, high)


def _listed(members: Members, next_use: Tensor, lines: Tensor, a: int, b: int, low: int, high: int) -> Listed:
    """What rows a to b have listed in the places low to high of the lines (one each, or one for all)."""
    place = torch.arange(low, high, device=lines.device)
    begin, end = members.begin[a:b, None], members.end[a:b, None]
    ids = members.ids[lines, low:high]
    inside = (place >= begin) & (place < end) & (next_use[lines, low:high] >= end) & (ids >= 0)
    return Listed(ids.clamp(min=0).long().expand(b - a, -1), inside, members.complement)


def next_places(ids: Tensor) -> Tensor:
    """[L, W] int64: where the id of each place stands next in its list, W if nowhere.

    A place with `begin <= place < end <= next` is the last of its id in that range: these count each id once.
    """
    width = ids.shape[1]
    ordered, place = ids.sort(dim=1, stable=True)
    after = torch.full_like(place, width)
    after[:, :-1] = torch.where(ordered[:, 1:] == ordered[:, :-1], place[:, 1:], width)
    return torch.empty_like(place).scatter(1, place, after)


def sync_stalls(values: Tensor) -> bool:
    """Would reading these values on the host wait for a device? Then no row is skipped for what stands in it."""
    return values.device.type != "cpu"


# ---- the arithmetic of one block ------------------------------------------------------------------------------------
#
# Log-sum-exp once, then only the discouraged tokens. The losses take logits `o` [b, V] and a buffer `z` [b, V], which
# may be the same memory, and leave the gradient with respect to `o` in `z`. Columns are [b, 1].


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


def _scale_grad(
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


def _unlikelihood(
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


def _entropy(o: Tensor, z: Tensor, listed: Listed) -> tuple[Tensor, Tensor]:
    """Entropy of p in nats and the discouraged mass, [b, 1] each: what a dynamic γ may look at."""
    top = o.amax(1, keepdim=True)
    torch.sub(o, top, out=z)
    shifted = z.clone()
    mass = z.exp_().sum(1, keepdim=True)
    mean = (z * shifted.masked_fill_(shifted.isneginf(), 0.0)).sum(1, keepdim=True) / mass
    in_list = listed.take(z)
    rest = z.sum(1, keepdim=True)
    return mass.log() - mean, (rest if listed.complement else in_list.sum(1, keepdim=True)) / mass
