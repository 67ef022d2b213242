"""What the kernels share: a row of logits as tiles, and one bit a token for what is discouraged.

A thread reads `WIDTH` neighbouring columns at once, 16 bytes of half precision. All threads together read a *unit*;
four units are a *tile*, so that four reads are under way at a time, and the 32 bits of a thread's columns are one word.

A row of an odd vocabulary (50,257) starts at an odd address, where wide reads are impossible. So the start moves back
to the last address that allows them, `lead` columns before the row, and everything is counted from there: columns,
tiles, bits. Only the units at the two ends then need a mask.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
LOWEST = tl.constexpr(-1e30)  # below any logit that matters, and finite: differences of it are never NaN

WIDTH = 8
UNITS = 4
LIST = 256  # ids looked at together when the bits change


@triton.jit
def unit_columns(G: tl.constexpr, WIDTH: tl.constexpr):
    """[G, WIDTH] the columns of a unit: thread g holds one line."""
    return tl.arange(0, G)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]


@triton.jit
def load_unit(
    row, at, lead, V,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Logits of the unit that starts at column `at`, after the model's head; LOWEST outside the row.

    AGAIN: the row will be read once more, so the cache should keep it.

    At an edge a thread reads its whole group if any column of it belongs to the row: an aligned group never leaves the
    memory that the row is in, and a mask by groups keeps the read wide.
    """
    columns = at + unit_columns(G, WIDTH)
    keep: tl.constexpr = "evict_last" if AGAIN else "evict_first"
    if not EDGE:
        return through_head(tl.load(row + columns, eviction_policy=keep), SOFTCAP, SCALE)
    group = at + tl.arange(0, G)[:, None] * WIDTH
    touches = (group + (WIDTH - 1) >= lead) & (group < lead + V)
    x = through_head(tl.load(row + columns, mask=touches, other=0.0, eviction_policy=keep), SOFTCAP, SCALE)
    return tl.where((columns >= lead) & (columns < lead + V), x, LOWEST)


@triton.jit
def load_tile(
    row, at, lead, V,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The four units of a tile: four reads under way before the first is used."""
    UNIT: tl.constexpr = G * WIDTH
    x0 = load_unit(row, at, lead, V, AGAIN, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x1 = load_unit(row, at + UNIT, lead, V, AGAIN, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x2 = load_unit(row, at + 2 * UNIT, lead, V, AGAIN, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x3 = load_unit(row, at + 3 * UNIT, lead, V, AGAIN, EDGE, SOFTCAP, SCALE, G, WIDTH)
    return x0, x1, x2, x3


@triton.jit
def store_unit(row, at, lead, V, value, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """Write the columns that belong to the row: whole groups wide, the one or two at the ends one by one."""
    columns = at + unit_columns(G, WIDTH)
    value = value.to(row.dtype.element_ty)
    if not EDGE:
        tl.store(row + columns, value)
    else:
        group = at + tl.arange(0, G)[:, None] * WIDTH
        whole = (group >= lead) & (group + WIDTH <= lead + V)
        tl.store(row + columns, value, mask=whole)
        if (at < lead) | (at + G * WIDTH > lead + V):
            tl.store(row + columns, value, mask=(columns >= lead) & (columns < lead + V) & (whole == 0))


@triton.jit
def skip_row(loss, nll, mass, seen, grad, lead, V, GRAD: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """An ignored row: zeros in all that is written of it."""
    tl.store(loss, 0.0)
    tl.store(nll, 0.0)
    tl.store(mass, 0.0)
    tl.store(seen, False)
    if GRAD:
        for at in range(0, lead + V, G * WIDTH):
            store_unit(grad, at, lead, V, tl.zeros([G, WIDTH], tl.float32), True, G, WIDTH)


@triton.jit
def through_head(x, SOFTCAP: tl.constexpr, SCALE: tl.constexpr):
    """c · tanh(s · x / c) in float32."""
    x = x.to(tl.float32)
    if SCALE != 1.0:
        x = x * SCALE
    if SOFTCAP > 0.0:
        x = SOFTCAP * (1 - 2 / (tl.exp2(x * (2 * LOG2E / SOFTCAP)) + 1))
    return x


@triton.jit
def head_slope(g, x, SOFTCAP: tl.constexpr, SCALE: tl.constexpr):
    """The gradient before the head from the one after it; x is what the head gave."""
    if SOFTCAP > 0.0:
        g *= 1 - (x / SOFTCAP) * (x / SOFTCAP)
    if SCALE != 1.0:
        g *= SCALE
    return g


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
def clear(words, ids, lead, first, stop, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr):
    """Clear the words that the tokens `ids[first:stop]` stand in: all that were set."""
    for start in range(first, stop, LIST):
        place = start + tl.arange(0, LIST)
        token = tl.load(ids + place, mask=place < stop, other=-1)
        word, _ = place_of(token + lead, G, WIDTH, UNITS)
        tl.store(words + word, 0, mask=token >= 0)


@triton.jit
def mark(
    words, listing, count, token, lead,
    LISTED: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr,
):  # fmt: skip
    """Set the bits of these tokens, −1 counting for nothing; LISTED: write down those that were not set before."""
    word, bit = place_of(token + lead, G, WIDTH, UNITS)
    old = tl.atomic_or(words + word, tl.full([LIST], 1, tl.int32) << bit, mask=token >= 0, sem="relaxed")
    if LISTED:
        new = ((token >= 0) & (((old >> bit) & 1) == 0)).to(tl.int32)
        tl.store(listing + count + tl.cumsum(new, 0) - 1, token, mask=new != 0)
        count += tl.sum(new)
    return count


@triton.jit
def load_row(n, N, targets, line, begin, end, SET: tl.constexpr):
    """Row n's target (−1 ignored, −2 beyond the last row) and the range of its list."""
    k = tl.load(targets + n, mask=n < N, other=-2).to(tl.int32)
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
def load_change(ids, ids_stride, line, first, end, LIST: tl.constexpr):
    """The first tokens of the change, read ahead so that nothing waits for them."""
    place = first + tl.arange(0, LIST)
    return tl.load(ids + line.to(tl.int64) * ids_stride + place, mask=place < end, other=-1)


@triton.jit
def follow(
    words, listing, count, ids, ids_stride, lead, line, begin, end, old_line, old_begin, old_end, change,
    LISTED: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr, LIST: tl.constexpr,
):  # fmt: skip
    """Bring the bits, and the list, from the set of the row before to that of this row: usually a few tokens more."""
    first = first_change(line, begin, end, old_line, old_begin, old_end)
    if (old_line >= 0) & ((line != old_line) | (begin != old_begin) | (end < old_end)):
        clear(words, ids + old_line.to(tl.int64) * ids_stride, lead, old_begin, old_end, G, WIDTH, UNITS, LIST)
        count = tl.full([], 0, tl.int32)
        tl.debug_barrier()
    count = mark(words, listing, count, change, lead, LISTED, G, WIDTH, UNITS, LIST)
    for start in range(first + LIST, end, LIST):
        more = load_change(ids, ids_stride, line, start, end, LIST)
        count = mark(words, listing, count, more, lead, LISTED, G, WIDTH, UNITS, LIST)
    tl.debug_barrier()
    return count


@triton.jit
def load_list(listing, count, MOST: tl.constexpr):
    """[MOST] the distinct discouraged tokens, −1 beyond them. Other threads wrote them, so the L1 is passed by."""
    place = tl.arange(0, MOST)
    return tl.load(listing + place, mask=place < count, other=-1, cache_modifier=".cg")
