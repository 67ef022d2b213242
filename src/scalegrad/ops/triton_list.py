"""What a row discourages as a short list of distinct tokens: gathered before the row is walked, put right after it.

A range of a list may hold an id more than once. A table made once for all rows says where each id stood before, so
every row knows its distinct tokens without bits and without the row before it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK, STEP = 8, 512  # places looked for, and looked at, together
CLAIMING_PROGRAMS = 512


@triton.jit
def read_list(ids, earlier, ids_stride, line, begin, end, MOST: tl.constexpr):
    """[MOST] the tokens of `ids[line, begin:end]`, and where each stood before."""
    place = begin + tl.arange(0, MOST)
    at = line.to(tl.int64) * ids_stride + place
    token = tl.load(ids + at, mask=place < end, other=-1)
    return token, tl.load(earlier + at, mask=place < end, other=0)


@triton.jit
def distinct(token, before, begin, V):
    """Of a list that was read: each token where it stands first, −1 at every other place."""
    return tl.where((before < begin) & (token < V), token, -1)


@triton.jit
def load_list(ids, earlier, ids_stride, line, begin, end, V, MOST: tl.constexpr):
    """Both: `distinct` of `read_list`."""
    token, before = read_list(ids, earlier, ids_stride, line, begin, end, MOST)
    return distinct(token, before, begin, V)


@triton.jit
def _earlier_kernel(ids, earlier, width, BLOCK: tl.constexpr, STEP: tl.constexpr):
    first = tl.program_id(1) * BLOCK
    base = tl.program_id(0).to(tl.int64) * width
    place = first + tl.arange(0, BLOCK)
    mine = tl.load(ids + base + place, mask=place < width, other=-1)
    found = tl.full([BLOCK], -1, tl.int32)
    for start in range(0, tl.minimum(first + BLOCK, width), STEP):
        other = start + tl.arange(0, STEP)
        theirs = tl.load(ids + base + other, mask=other < width, other=-2)
        same = (mine[:, None] == theirs[None, :]) & (other[None, :] < place[:, None])
        found = tl.maximum(found, tl.max(tl.where(same, other[None, :], -1), 1))
    tl.store(earlier + base + place, found, mask=place < width)


def earlier_use(ids: Tensor) -> Tensor:
    """[L, W] where the id of each place stood last before it in its line, −1 if nowhere."""
    earlier = torch.empty_like(ids)
    lines, width = ids.shape
    _earlier_kernel[(lines, triton.cdiv(width, BLOCK))](ids, earlier, width, BLOCK=BLOCK, STEP=STEP)
    return earlier


@triton.jit
def _claim_kernel(ids, claimed, words, lines, width, V, words_each, STEP: tl.constexpr):
    words += tl.program_id(0).to(tl.int64) * words_each
    for line in range(tl.program_id(0), lines, tl.num_programs(0)):
        base = tl.cast(line, tl.int64) * width
        for start in range(0, width, STEP):
            place = start + tl.arange(0, STEP)
            token = tl.load(ids + base + place, mask=place < width, other=-1)
            bit = tl.full([STEP], 1, tl.int32) << (token & 31)
            old = tl.atomic_or(words + token // 32, bit, mask=(token >= 0) & (token < V), sem="relaxed")
            tl.store(claimed + base + place, tl.where((old & bit) != 0, 0, -1), mask=place < width)
        tl.debug_barrier()
        for start in range(0, width, STEP):
            place = start + tl.arange(0, STEP)
            token = tl.load(ids + base + place, mask=place < width, other=-1)
            tl.store(words + token // 32, 0, mask=(token >= 0) & (token < V))
        tl.debug_barrier()


def claimed_use(ids: Tensor, vocab: int) -> Tensor:
    """[L, W] −1 at one place of each id of a line, 0 at all others: as `earlier_use` for ranges that are whole lines,
    in linear time. Which place it is, is up to the device."""
    claimed = torch.empty_like(ids)
    lines, width = ids.shape
    programs, words_each = min(lines, CLAIMING_PROGRAMS), triton.cdiv(vocab, 32)
    words = torch.zeros(programs * words_each, dtype=torch.int32, device=ids.device)
    _claim_kernel[(programs,)](ids, claimed, words, lines, width, vocab, words_each, STEP=STEP)
    return claimed
