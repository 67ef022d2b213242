"""What the kernels share: a row of logits as tiles, and the model's head.

A thread reads `WIDTH` neighbouring columns at once, 16 bytes of half precision. All threads together read a *unit*;
four units are a *tile*, so that four reads are under way at a time, and the bits of a thread's columns
(`triton_bits`) are one word of 32.

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

# Where a unit or tile lies: within the row; where the row starts and does not end; where it may do both. RAGGED is END
# for rows that do not all end with a group.
INNER, START, END, RAGGED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)


@triton.jit
def unit_columns(G: tl.constexpr, WIDTH: tl.constexpr):
    """[G, WIDTH] the columns of a unit: thread g holds one line."""
    return tl.arange(0, G)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]


@triton.jit
def read_unit(row, at, lead, V, room, AGAIN: tl.constexpr, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """[G, WIDTH] the unit that starts at column `at`, as it lies in memory.

    AGAIN: the row will be read once more, so the cache should keep it.

    At an edge (`START`, `END`, `RAGGED`) a thread reads its whole group if any column of it belongs to the row: a mask
    by groups keeps the read wide. Where rows do not end with a group, the last group of the last row may reach beyond
    the memory, `room` columns from `row` on; it is read column by column.
    """
    columns = at + unit_columns(G, WIDTH)
    keep: tl.constexpr = "evict_last" if AGAIN else "evict_first"
    if EDGE == INNER:
        return tl.load(row + columns, eviction_policy=keep)
    group = at + tl.arange(0, G)[:, None] * WIDTH
    touches = group + (WIDTH - 1) >= lead
    if EDGE != START:
        touches = touches & (group < lead + V)
    if EDGE != RAGGED:
        return tl.load(row + columns, mask=touches, other=0.0, eviction_policy=keep)
    inside = group + WIDTH <= room
    x = tl.load(row + columns, mask=touches & inside, other=0.0, eviction_policy=keep)
    if (at < room) & (at + G * WIDTH > room):
        x = tl.where(inside, x, tl.load(row + columns, mask=(columns < lead + V) & (inside == 0), other=0.0))
    return x


@triton.jit
def open_unit(
    x, at, lead, V, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr
):
    """Logits of a unit that was read, after the model's head, in float32; LOWEST outside the row."""
    x = through_head(x, SOFTCAP, SCALE)
    if EDGE != INNER:
        columns = at + unit_columns(G, WIDTH)
        inside = columns >= lead
        if EDGE != START:
            inside = inside & (columns < lead + V)
        x = tl.where(inside, x, LOWEST)
    return x


@triton.jit
def load_unit(
    row, at, lead, V, room,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Both: `open_unit` of `read_unit`."""
    x = read_unit(row, at, lead, V, room, AGAIN, EDGE, G, WIDTH)
    return open_unit(x, at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)


@triton.jit
def read_tile(row, at, lead, V, room, AGAIN: tl.constexpr, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """The four units of a tile: four reads under way before the first is used."""
    x0 = read_unit(row, at, lead, V, room, AGAIN, EDGE, G, WIDTH)
    x1 = read_unit(row, at + G * WIDTH, lead, V, room, AGAIN, EDGE, G, WIDTH)
    x2 = read_unit(row, at + 2 * G * WIDTH, lead, V, room, AGAIN, EDGE, G, WIDTH)
    x3 = read_unit(row, at + 3 * G * WIDTH, lead, V, room, AGAIN, EDGE, G, WIDTH)
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
    row, at, lead, V, room,
    AGAIN: tl.constexpr, EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Both: `open_tile` of `read_tile`."""
    x0, x1, x2, x3 = read_tile(row, at, lead, V, room, AGAIN, EDGE, G, WIDTH)
    return open_tile(x0, x1, x2, x3, at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)


@triton.jit
def store_unit(row, at, lead, V, value, EDGE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """Write the columns that belong to the row: whole groups wide, the one or two at the ends one by one."""
    columns = at + unit_columns(G, WIDTH)
    value = value.to(row.dtype.element_ty)
    if EDGE == INNER:
        tl.store(row + columns, value)
    elif EDGE == START:
        whole = at + tl.arange(0, G)[:, None] * WIDTH >= lead
        tl.store(row + columns, value, mask=whole)
        if at < lead:
            tl.store(row + columns, value, mask=(columns >= lead) & (whole == 0))
    else:
        group = at + tl.arange(0, G)[:, None] * WIDTH
        whole = (group >= lead) & (group + WIDTH <= lead + V)
        tl.store(row + columns, value, mask=whole)
        if (at < lead) | (at + G * WIDTH > lead + V):
            tl.store(row + columns, value, mask=(columns >= lead) & (columns < lead + V) & (whole == 0))


@triton.jit
def skip_row(k, loss, nll, mass, seen, grad, lead, V, GRAD: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    """An ignored row: zeros in all that is written of it; NaN where the target k is no token, so that it is noticed."""
    value = tl.where(k == -1, 0.0, float("nan"))
    tl.store(loss, value)
    tl.store(nll, value)
    tl.store(mass, value)
    tl.store(seen, False)
    if GRAD:
        for at in range(0, lead + V, G * WIDTH):
            store_unit(grad, at, lead, V, tl.zeros([G, WIDTH], tl.float32) + value, END, G, WIDTH)


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
