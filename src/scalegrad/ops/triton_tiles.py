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
def read_unit(row, at, lead, V, AGAIN: tl.constexpr, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """[G, WIDTH] the unit that starts at column `at`, as it lies in memory.

    AGAIN: the row will be read once more, so the cache should keep it.

    At an edge a thread reads its whole group if any column of it belongs to the row: an aligned group never leaves the
    memory that the row is in, and a mask by groups keeps the read wide.
    """
    columns = at + unit_columns(G, WIDTH)
    keep: tl.constexpr = "evict_last" if AGAIN else "evict_first"
    if not EDGE:
        return tl.load(row + columns, eviction_policy=keep)
    group = at + tl.arange(0, G)[:, None] * WIDTH
    touches = (group + (WIDTH - 1) >= lead) & (group < lead + V)
    return tl.load(row + columns, mask=touches, other=0.0, eviction_policy=keep)


@triton.jit
def open_unit(
    x, at, lead, V, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr
):
    """Logits of a unit that was read, after the model's head, in float32; LOWEST outside the row."""
    x = through_head(x, SOFTCAP, SCALE)
    if EDGE:
        columns = at + unit_columns(G, WIDTH)
        x = tl.where((columns >= lead) & (columns < lead + V), x, LOWEST)
    return x


@triton.jit
def load_unit(
    row, at, lead, V,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Both: `open_unit` of `read_unit`."""
    return open_unit(read_unit(row, at, lead, V, AGAIN, EDGE, G, WIDTH), at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)


@triton.jit
def read_tile(row, at, lead, V, AGAIN: tl.constexpr, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """The four units of a tile: four reads under way before the first is used."""
    x0 = read_unit(row, at, lead, V, AGAIN, EDGE, G, WIDTH)
    x1 = read_unit(row, at + G * WIDTH, lead, V, AGAIN, EDGE, G, WIDTH)
    x2 = read_unit(row, at + 2 * G * WIDTH, lead, V, AGAIN, EDGE, G, WIDTH)
    x3 = read_unit(row, at + 3 * G * WIDTH, lead, V, AGAIN, EDGE, G, WIDTH)
    return x0, x1, x2, x3


@triton.jit
def open_tile(
    x0, x1, x2, x3, at, lead, V,
    EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    x0 = open_unit(x0, at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x1 = open_unit(x1, at + G * WIDTH, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x2 = open_unit(x2, at + 2 * G * WIDTH, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    x3 = open_unit(x3, at + 3 * G * WIDTH, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    return x0, x1, x2, x3


@triton.jit
def load_tile(
    row, at, lead, V,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Both: `open_tile` of `read_tile`."""
    x0, x1, x2, x3 = read_tile(row, at, lead, V, AGAIN, EDGE, G, WIDTH)
    return open_tile(x0, x1, x2, x3, at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)


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
