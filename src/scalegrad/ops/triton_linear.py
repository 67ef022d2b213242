"""Hidden states in, on a GPU: few large chunks of logits, each turned into its own gradient by the fused kernel.

Matrix products on a vocabulary that is no multiple of eight (50,257) run at a fraction of the speed, so the head's
weight is padded inside with rows of zeros: their logits meet no kernel and their gradients are cut off.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.ops import triton_logits
from scalegrad.ops.chunked import HeadGrads
from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.sets import Members

CHUNK_BYTES = 384 << 20  # of logits at once,
CHUNK_ROWS = 2048  # unless these are more: fewer rows would make slow products and many sums of dW
PAD_TO = 64  # columns


def fill(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rows: Rows,
    members: Members,
    objective: Objective,
    wanted: tuple[bool, bool, bool],
    accumulate_in_float32: bool = False,
) -> tuple[Losses, HeadGrads]:
    """Losses of `hidden @ weight.T + bias`, and the gradients wanted of (hidden, weight, bias).

    The chunks' parts of the weight's gradient are summed in its own dtype; with `accumulate_in_float32` in float32,
    which costs its memory twice again.
    """
    n, vocab = len(hidden), len(weight)
    if n == 0:
        losses = triton_logits.fill(hidden.new_empty(0, vocab), None, rows, members, objective)
        inputs = zip((hidden, weight, bias), wanted, strict=True)
        made = (torch.zeros_like(x) if want and x is not None else None for x, want in inputs)
        return losses, HeadGrads(*made)
    padding = -vocab % PAD_TO if vocab % 8 else 0
    head, head_bias = weight, bias
    if padding:
        head = F.pad(weight, (0, 0, 0, padding))
        head_bias = None if bias is None else F.pad(bias, (0, padding))
    d_hidden = torch.empty_like(hidden) if wanted[0] else None
    d_weight = (
        torch.empty_like(head, dtype=torch.float32 if accumulate_in_float32 else head.dtype) if wanted[1] else None
    )
    d_bias = torch.zeros(vocab, dtype=torch.float32, device=hidden.device) if wanted[2] else None

    size = _chunk_rows(n, len(head), hidden.element_size())
    buffer = torch.empty(min(size, n), len(head), dtype=hidden.dtype, device=hidden.device)
    repeats = None if members.own_lines else triton_logits.repeats_of(members, objective, vocab)  # once for all chunks
    parts = []
    for a in range(0, n, size):
        ignored = (rows.targets[a : a + size] < 0)[:, None]
        h = hidden[a : a + size].masked_fill(ignored, 0.0)  # NaN there must not reach a product
        chunk = buffer[: len(h)]
        if head_bias is None:
            torch.mm(h, head.t(), out=chunk)
        else:
            torch.addmm(head_bias, h, head.t(), out=chunk)
        logits = chunk[:, :vocab]
        part = Rows(*(column[a : a + size] for column in rows))
        grad = logits if any(wanted) else None
        parts.append(triton_logits.fill(logits, grad, part, members.take(slice(a, a + size)), objective, repeats))
        if d_hidden is not None:
            torch.mm(chunk, head, out=d_hidden[a : a + size])
        if d_weight is not None:
            _add_product(d_weight, chunk.t(), h, first=a == 0)
        if d_bias is not None:
            d_bias += logits.sum(0, dtype=torch.float32)
        del h  # before the next is made
    losses = Losses(*(torch.cat(column) for column in zip(*parts, strict=True)))
    return losses, HeadGrads(
        d_hidden,
        None if d_weight is None else d_weight[:vocab].to(weight.dtype),
        None if d_bias is None or bias is None else d_bias.to(bias.dtype),
    )


def _add_product(total: Tensor, a: Tensor, b: Tensor, first: bool) -> None:
    """total += a @ b, or total = a @ b: it is not set before."""
    if total.dtype != a.dtype:
        product = torch.mm(a, b)
        total.copy_(product) if first else total.add_(product)
    elif first:
        torch.mm(a, b, out=total)
    else:
        total.addmm_(a, b)


def _chunk_rows(n: int, vocab: int, element_size: int) -> int:
    """Equal chunks within the memory budget, so a function of the shapes alone: the same on every rank."""
    most = max(CHUNK_ROWS, CHUNK_BYTES // (vocab * element_size))
    return math.ceil(math.ceil(n / math.ceil(n / most)) / 128) * 128
