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
) -> tuple[Losses, HeadGrads]:
    """Losses of `hidden @ weight.T + bias`, and the gradients wanted of (hidden, weight, bias)."""
    n, vocab = len(hidden), len(weight)
    if n == 0:
        losses = triton_logits.fill(hidden.new_empty(0, vocab), None, rows, members, objective)
        inputs = zip((hidden, weight, bias), wanted, strict=True)
        made = (torch.zeros_like(x) if want and x is not None else None for x, want in inputs)
        return losses, HeadGrads(*made)
    hidden = hidden.masked_fill((rows.targets < 0)[:, None], 0.0)  # NaN there must not reach a product
    padding = -vocab % PAD_TO if vocab % 8 else 0
    head, head_bias = weight, bias
    if padding:
        head = F.pad(weight, (0, 0, 0, padding))
        head_bias = None if bias is None else F.pad(bias, (0, padding))
    d_hidden = torch.empty_like(hidden) if wanted[0] else None
    d_weight = torch.empty_like(head) if wanted[1] else None
    d_bias = torch.zeros(vocab, dtype=torch.float32, device=hidden.device) if wanted[2] else None

    size = _chunk_rows(n, len(head), hidden.element_size())
    buffer = torch.empty(min(size, n), len(head), dtype=hidden.dtype, device=hidden.device)
    parts = []
    for a in range(0, n, size):
        h = hidden[a : a + size]
        chunk = buffer[: len(h)]
        if head_bias is None:
            torch.mm(h, head.t(), out=chunk)
        else:
            torch.addmm(head_bias, h, head.t(), out=chunk)
        logits = chunk[:, :vocab]
        part = Rows(*(column[a : a + size] for column in rows))
        grad = logits if any(wanted) else None
        parts.append(triton_logits.fill(logits, grad, part, members.take(slice(a, a + size)), objective))
        if d_hidden is not None:
            torch.mm(chunk, head, out=d_hidden[a : a + size])
        if d_weight is not None and a == 0:
            torch.mm(chunk.t(), h, out=d_weight)
        elif d_weight is not None:
            d_weight.addmm_(chunk.t(), h)  # summed in the weight's own dtype: in float32 it would cost its memory twice
        if d_bias is not None:
            d_bias += logits.sum(0, dtype=torch.float32)
    losses = Losses(*(torch.cat(column) for column in zip(*parts, strict=True)))
    return losses, HeadGrads(
        d_hidden,
        None if d_weight is None else d_weight[:vocab],
        None if d_bias is None or bias is None else d_bias.to(bias.dtype),
    )


def _chunk_rows(n: int, vocab: int, element_size: int) -> int:
    """Equal chunks within the memory budget, so a function of the shapes alone: the same on every rank."""
    most = max(CHUNK_ROWS, CHUNK_BYTES // (vocab * element_size))
    return math.ceil(math.ceil(n / math.ceil(n / most)) / 128) * 128
