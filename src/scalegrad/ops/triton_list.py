"""What a row discourages as a short list of distinct tokens: gathered before the row is walked, put right after it.

A range of a list may hold an id more than once. A table made once for all rows says where each id stood before, so
every row knows its distinct tokens without bits and without the row before it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def load_list(ids, earlier, ids_stride, line, begin, end, V, MOST: tl.constexpr):
    """[MOST] the distinct tokens of `ids[line, begin:end]`: each where it stands first, −1 at every other place."""
    place = begin + tl.arange(0, MOST)
    at = line.to(tl.int64) * ids_stride + place
    token = tl.load(ids + at, mask=place < end, other=-1)
    before = tl.load(earlier + at, mask=place < end, other=0)
    return tl.where((before < begin) & (token < V), token, -1)


@triton.jit
def _earlier_kernel(ids, earlier, width, most, BLOCK: tl.constexpr, STEP: tl.constexpr):
    first = tl.program_id(1) * BLOCK
    base = tl.program_id(0).to(tl.int64) * width
    place = first + tl.arange(0, BLOCK)
    mine = tl.load(ids + base + place, mask=place < width, other=-1)
    found = tl.full([BLOCK], -1, tl.int32)
    for start in range(tl.maximum(first - most, 0), tl.minimum(first + BLOCK, width), STEP):
        other = start + tl.arange(0, STEP)
        theirs = tl.load(ids + base + other, mask=other < width, other=-2)
        same = (mine[:, None] == theirs[None, :]) & (other[None, :] < place[:, None])
        found = tl.maximum(found, tl.max(tl.where(same, other[None, :], -1), 1))
    tl.store(earlier + base + place, found, mask=place < width)


def earlier_use(ids: Tensor, most: int) -> Tensor:
    """[L, W] where the id of each place stood last before it in its line, −1 if nowhere in the `most` places before."""
    earlier = torch.empty_like(ids)
    lines, width = ids.shape
    _earlier_kernel[(lines, triton.cdiv(width, 32))](ids, earlier, width, most, BLOCK=32, STEP=128)
    return earlier
