"""Logits in, no [T, V] mask anywhere: blocks of rows that stay in the cache, the gradient made in the same pass.

Pure torch, for any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from scalegrad.ops import blocks
from scalegrad.ops.rows import Losses, Objective, Rows, arithmetic_dtype, looking_waits
from scalegrad.sets import Members

CPU_BLOCK = 1 << 21  # elements of logits at once, for each thread: small enough for a core's cache
DEVICE_BLOCK = 1 << 26


def fill(logits: Tensor, grad: Tensor | None, rows: Rows, members: Members, objective: Objective) -> Losses:
    """Losses of all rows; their gradient, scaled by `rows.weight`, goes to `grad`, which may be `logits` itself."""
    out = _empty_losses(logits)
    size = _block_rows(logits, members)
    work = _Workspace(logits, grad, objective, size)
    step = blocks.scale_grad if objective.name == "scale_grad" else blocks.unlikelihood
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
            h, mass = blocks.entropy(*work.open(a, b), listed)
            ignored = targets[a:b] < 0
            entropy[a:b], seen_mass[a:b] = h[:, 0].masked_fill(ignored, 0), mass[:, 0].masked_fill(ignored, 0)
    return entropy, seen_mass


def _empty_losses(logits: Tensor) -> Losses:
    zeros = torch.zeros(len(logits), dtype=arithmetic_dtype(logits.dtype), device=logits.device)
    return Losses(zeros, zeros.clone(), zeros.clone(), torch.zeros_like(zeros, dtype=torch.bool))


def _block_rows(logits: Tensor, members: Members) -> int:
    elements = CPU_BLOCK * torch.get_num_threads() if logits.device.type == "cpu" else DEVICE_BLOCK
    return max(1, elements // max(logits.shape[1], members.ids.shape[1], 1))


class _Workspace:
    """The memory of a block: where its logits are read in float32 and where its gradient is made."""

    def __init__(self, logits: Tensor, grad: Tensor | None, objective: Objective, rows: int) -> None:
        self.logits, self.grad, self.objective = logits, grad, objective
        dtype = arithmetic_dtype(logits.dtype)
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
        if looking_waits(z):  # else ignored rows never get this far
            z.masked_fill_(ignored, 0.0)
        if not self.direct:
            self.grad[a:b].copy_(z)

    def clear(self, a: int, b: int) -> None:
        if self.grad is not None:
            self.grad[a:b].zero_()


def _blocks(targets: Tensor, members: Members, size: int) -> Iterator[tuple[int, int, blocks.Listed | None]]:
    """Cut the rows into blocks (a, b) with the tokens listed for them; None where all of them are ignored."""
    n, next_use = len(targets), members.next_use()
    if looking_waits(targets):  # equal blocks
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


def _listed(members: Members, next_use: Tensor, lines: Tensor, a: int, b: int, low: int, high: int) -> blocks.Listed:
    """What rows a to b have listed in the places low to high of the lines (one each, or one for all)."""
    place = torch.arange(low, high, device=lines.device)
    begin, end = members.begin[a:b, None], members.end[a:b, None]
    ids = members.ids[lines, low:high]
    inside = (place >= begin) & (place < end) & (next_use[lines, low:high] >= end) & (ids >= 0)
    return blocks.Listed(ids.clamp(min=0).long().expand(b - a, -1), inside, members.complement)
