"""One bit a token for what a row discourages, kept from row to row: for sets too long for a list.

The bits are counted as the tiles are (`triton_tiles`): a 32-bit word holds those of a thread's columns of a tile. A
program keeps V / 8 bytes of them and changes only what differs from the row before.
"""

from __future__ import annotations

import triton
import triton.language as tl

LIST = 512  # ids looked at together when the bits change: one a thread


@triton.jit
def load_words(words, tile, G: tl.constexpr):
    """[G, 1] the bits of each thread's columns of a tile. Atomics change them behind the L1, so it is passed by."""
    return tl.load(words + tile * G + tl.arange(0, G)[:, None], cache_modifier=".cg")


@triton.jit
def bits_of(word, unit, WIDTH: tl.constexpr):
    """[G, WIDTH] is the token of each column of this unit discouraged?"""
    return (word & (1 << (unit * WIDTH + tl.arange(0, WIDTH)[None, :]))) != 0


@triton.jit
def place_of(column, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr):
    """The word and the bit in it that stand for a column."""
    unit = column // (G * WIDTH)
    word = (unit // UNITS) * G + (column % (G * WIDTH)) // WIDTH
    return word, (unit % UNITS) * WIDTH + column % WIDTH


@triton.jit
def has_bit(words, column, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr):
    word, bit = place_of(column, G, WIDTH, UNITS)
    return ((tl.load(words + word, cache_modifier=".cg") >> bit) & 1) != 0


@triton.jit
def flip(words, column, SET: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr):
    """Set or clear the bit of one column."""
    word, bit = place_of(column, G, WIDTH, UNITS)
    mask = tl.full([], 1, tl.int32) << bit
    old = tl.load(words + word, cache_modifier=".cg")
    tl.debug_barrier()
    tl.store(words + word, old | mask if SET else old & ~mask)
    tl.debug_barrier()


@triton.jit
def load_row(n, N, V, targets, line, begin, end, SET: tl.constexpr):
    """Row n's target (−1 ignored, −2 beyond the last row, −3 no token of the vocabulary) and the range of its list."""
    k = tl.load(targets + n, mask=n < N, other=-2)
    k = tl.where(k < V, k, -3).to(tl.int32)
    if SET:
        return (
            k,
            tl.load(line + n, mask=n < N, other=0).to(tl.int32),
            tl.load(begin + n, mask=n < N, other=0).to(tl.int32),
            tl.load(end + n, mask=n < N, other=0).to(tl.int32),
        )
    return k, k, k, k


@triton.jit
def first_change(line, begin, end, old_line, old_begin, old_end):
    """Where a row's list goes beyond what the bits hold already: usually after the row before."""
    return tl.where((line == old_line) & (begin == old_begin) & (end >= old_end), old_end, begin)


@triton.jit
def load_tokens(ids, first, end, V, LIST: tl.constexpr):
    """`ids[first:end]`, at most LIST of them; −1 beyond, and for what is no token."""
    place = first + tl.arange(0, LIST)
    token = tl.load(ids + place, mask=place < end, other=-1)
    return tl.where(token < V, token, -1)


@triton.jit
def _clear(
    words, ids, lead, V, first, stop, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr
):
    """Clear the words that the tokens `ids[first:stop]` stand in: all that were set."""
    for start in range(first, stop, LIST):
        token = load_tokens(ids, start, stop, V, LIST)
        word, _ = place_of(token + lead, G, WIDTH, UNITS)
        tl.store(words + word, 0, mask=token >= 0)


@triton.jit
def _mark(words, token, lead, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr):
    """Set the bits of these tokens, −1 counting for nothing."""
    word, bit = place_of(token + lead, G, WIDTH, UNITS)
    tl.atomic_or(words + word, tl.full([LIST], 1, tl.int32) << bit, mask=token >= 0, sem="relaxed")


@triton.jit
def follow(
    words, ids, ids_stride, lead, V, line, begin, end, old_line, old_begin, old_end, change,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr,
):  # fmt: skip
    """Bring the bits from the set of the row before to that of this row: usually a few tokens more.

    `change` are the first tokens of it, read before so that nothing waits for them.
    """
    first = first_change(line, begin, end, old_line, old_begin, old_end)
    if (old_line >= 0) & ((line != old_line) | (begin != old_begin) | (end < old_end)):
        _clear(words, ids + old_line.to(tl.int64) * ids_stride, lead, V, old_begin, old_end, G, WIDTH, UNITS, LIST)
        tl.debug_barrier()
    _mark(words, change, lead, G, WIDTH, UNITS, LIST)
    for start in range(first + LIST, end, 4 * LIST):  # a long way: more at a time, and only what is not set already
        more = load_tokens(ids + line.to(tl.int64) * ids_stride, start, end, V, 4 * LIST)
        word, bit = place_of(more + lead, G, WIDTH, UNITS)
        old = tl.load(words + word, mask=more >= 0, other=0, cache_modifier=".cg")
        _mark(words, tl.where(((old >> bit) & 1) == 0, more, -1), lead, G, WIDTH, UNITS, 4 * LIST)
    tl.debug_barrier()
