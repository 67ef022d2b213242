"""Hidden states in: the [N, V] logits exist one chunk at a time and turn into their own gradient in place.

Pure torch, for any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.ops import sparse
from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.ops.sparse import sync_stalls
from scalegrad.sets import Members

CHUNK_ELEMENTS = 1 << 24  # of logits at once


class HeadGrads(NamedTuple):
    """Gradients of the weighted total; None where not asked for."""

    hidden: Tensor | None  # [N, D]
    weight: Tensor | None  # [V, D]
    bias: Tensor | None  # [V]


def fill(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rows: Rows,
    members: Members,
    objective: Objective,
    wanted: tuple[bool, bool, bool],
    accumulate_in_float32: bool = True,
) -> tuple[Losses, HeadGrads]:
    """Losses of `hidden @ weight.T + bias`, and the gradients wanted of (hidden, weight, bias).

    These are summed in float32 here, `accumulate_in_float32` or not.
    """
    kept = _rows_with_target(rows.targets)
    if kept is not None:  # only the rows with a target cost anything
        part = Rows(*(column[kept] for column in rows))
        losses, grads = fill(hidden[kept], weight, bias, part, members.take(kept), objective, wanted)
        scattered = (column.new_zeros(len(hidden)).index_copy_(0, kept, column) for column in losses)
        if grads.hidden is not None:
            grads = grads._replace(hidden=torch.zeros_like(hidden).index_copy_(0, kept, grads.hidden))
        return Losses(*scattered), grads

    sums = torch.promote_types(hidden.dtype, torch.float32)
    d_hidden = torch.empty_like(hidden) if wanted[0] else None
    d_weight = torch.zeros_like(weight, dtype=sums) if wanted[1] else None
    d_bias = torch.zeros_like(bias, dtype=sums) if wanted[2] and bias is not None else None
    parts = []
    for a, b, logits in _chunks(hidden, weight, bias):
        part = Rows(*(column[a:b] for column in rows))
        grad = logits if any(wanted) else None
        parts.append(sparse.fill(logits, grad, part, members.take(slice(a, b)), objective))
        if d_hidden is not None:
            torch.mm(logits, weight, out=d_hidden[a:b])
        if d_weight is not None:
            inputs = hidden[a:b]
            if sync_stalls(hidden):  # ignored rows take part with a gradient of 0, and 0 · NaN is NaN
                inputs = inputs.masked_fill(part.targets[:, None] < 0, 0.0)
            if d_weight.dtype == logits.dtype:
                d_weight.addmm_(logits.t(), inputs)
            else:
                d_weight.add_(logits.t() @ inputs)
        if d_bias is not None:
            d_bias.add_(logits.sum(0, dtype=sums))
    losses = Losses(*(torch.cat(column) for column in zip(*parts, strict=True)))
    return losses, HeadGrads(
        d_hidden,
        None if d_weight is None else d_weight.to(weight.dtype),
        None if d_bias is None or bias is None else d_bias.to(bias.dtype),
    )


def statistics(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, members: Members, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Entropy and discouraged mass of each row, [N] each."""
    parts = [
        sparse.statistics(logits, targets[a:b], members.take(slice(a, b)), objective)
        for a, b, logits in _chunks(hidden, weight, bias)
    ]
    entropy, seen_mass = zip(*parts, strict=True)
    return torch.cat(entropy), torch.cat(seen_mass)


def _rows_with_target(targets: Tensor) -> Tensor | None:
    """Their indices, if some rows have none and a look does not wait for a device."""
    if sync_stalls(targets):
        return None
    kept = targets >= 0
    return None if bool(kept.all()) else kept.nonzero()[:, 0]


def _chunks(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Iterator[tuple[int, int, Tensor]]:
    """(a, b, logits [b − a, V]); one empty chunk for an empty batch."""
    rows = max(1, CHUNK_ELEMENTS // max(1, len(weight)))
    for a in range(0, max(1, len(hidden)), rows):
        b = min(a + rows, len(hidden))
        yield a, b, F.linear(hidden[a:b], weight, bias)
