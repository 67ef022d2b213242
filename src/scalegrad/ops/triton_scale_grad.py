"""ScaleGrad and cross-entropy on a GPU: each row of logits is read from memory once, its gradient written once.

A row is read for its sums and, from the cache, again to write its gradient, over the logits themselves where the caller
allows it; the last whole tile stays in registers between the two. What the row discourages is a short list of distinct
tokens (LISTED: one row a program) or one bit a token (SET: some rows a program, which changes only what differs from
row to row). Exponentials are powers of two: 2^(x·log₂e − c).
"""

from __future__ import annotations

import triton
import triton.language as tl

from scalegrad.ops.triton_bits import bits_of, first_change, follow, has_bit, load_row, load_tokens, load_words
from scalegrad.ops.triton_list import distinct, read_list
from scalegrad.ops.triton_tiles import (
    INNER,
    LN2,
    LOG2E,
    LOWEST,
    START,
    head_slope,
    load_unit,
    open_tile,
    read_tile,
    skip_row,
    store_unit,
    through_head,
)


@triton.jit
def _add_unit(
    x, c, mass, seen_sum, plain, word, unit,
    SET: tl.constexpr, COMPLEMENT: tl.constexpr, SMOOTH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    e = tl.exp2(tl.fma(x, LOG2E, -c))
    mass += tl.sum(e, 1, keep_dims=True)
    if SET:
        on = tl.where(bits_of(word, unit, WIDTH), 0.0 if COMPLEMENT else e, e if COMPLEMENT else 0.0)
        seen_sum += tl.sum(on, 1, keep_dims=True)
    if SMOOTH:
        plain += tl.sum(tl.where(x == LOWEST, 0.0, x), 1, keep_dims=True)
    return mass, seen_sum, plain


@triton.jit
def _add_tile(
    x0, x1, x2, x3, words, i, lead, V, c, mass, seen_sum, plain,
    EDGE: tl.constexpr, SET: tl.constexpr, COMPLEMENT: tl.constexpr, SMOOTH: tl.constexpr,
    SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Add a tile that was read to each thread's sums, which are relative to its own running maximum 2^c."""
    word = load_words(words, i, G) if SET else 0
    x0, x1, x2, x3 = open_tile(x0, x1, x2, x3, i * (G * WIDTH * UNITS), lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    top = tl.max(tl.maximum(tl.maximum(x0, x1), tl.maximum(x2, x3)), 1, keep_dims=True)
    higher = tl.maximum(c, top * LOG2E)
    fade = tl.exp2(c - higher)
    c, mass, seen_sum = higher, mass * fade, seen_sum * fade
    mass, seen_sum, plain = _add_unit(x0, c, mass, seen_sum, plain, word, 0, SET, COMPLEMENT, SMOOTH, WIDTH)
    mass, seen_sum, plain = _add_unit(x1, c, mass, seen_sum, plain, word, 1, SET, COMPLEMENT, SMOOTH, WIDTH)
    mass, seen_sum, plain = _add_unit(x2, c, mass, seen_sum, plain, word, 2, SET, COMPLEMENT, SMOOTH, WIDTH)
    mass, seen_sum, plain = _add_unit(x3, c, mass, seen_sum, plain, word, 3, SET, COMPLEMENT, SMOOTH, WIDTH)
    return c, mass, seen_sum, plain


@triton.jit
def _add_tail(
    row, words, at, tile, lead, V, room, c, mass, seen_sum, plain,
    LAST: tl.constexpr, SET: tl.constexpr, COMPLEMENT: tl.constexpr, SMOOTH: tl.constexpr,
    SOFTCAP: tl.constexpr, SCALE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """The same for one unit of the last tile, which the row fills only in part."""
    word = load_words(words, tile, G) if SET else 0
    x = load_unit(row, at, lead, V, room, True, LAST, SOFTCAP, SCALE, G, WIDTH)
    higher = tl.maximum(c, tl.max(x, 1, keep_dims=True) * LOG2E)
    fade = tl.exp2(c - higher)
    unit = (at // (G * WIDTH)) % UNITS
    mass, seen_sum, plain = _add_unit(
        x, higher, mass * fade, seen_sum * fade, plain, word, unit, SET, COMPLEMENT, SMOOTH, WIDTH
    )
    return higher, mass, seen_sum, plain


@triton.jit
def _write_unit(
    row, at, lead, V, x, c, word, unit, on_list, off_list, floor,
    EDGE: tl.constexpr, SET: tl.constexpr, SMOOTH: tl.constexpr,
    SOFTCAP: tl.constexpr, SCALE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    factor = tl.where(bits_of(word, unit, WIDTH), on_list, off_list) if SET else off_list
    g = tl.exp2(tl.fma(x, LOG2E, -c)) * factor
    if SMOOTH:
        g -= floor
    store_unit(row, at, lead, V, head_slope(g, x, SOFTCAP, SCALE), EDGE, G, WIDTH)


@triton.jit
def _write_tile(
    x0, x1, x2, x3, grad, words, i, lead, V, c, on, off, floor,
    EDGE: tl.constexpr, SET: tl.constexpr, SMOOTH: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Eq. 6 away from the target: p̃ − ε/V, scaled by the row's weight."""
    UNIT: tl.constexpr = G * WIDTH
    at = i * (UNIT * UNITS)
    word = load_words(words, i, G) if SET else 0
    x0, x1, x2, x3 = open_tile(x0, x1, x2, x3, at, lead, V, EDGE, SOFTCAP, SCALE, G, WIDTH)
    _write_unit(grad, at, lead, V, x0, c, word, 0, on, off, floor, EDGE, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH)
    _write_unit(grad, at + UNIT, lead, V, x1, c, word, 1, on, off, floor, EDGE, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH)
    _write_unit(
        grad, at + 2 * UNIT, lead, V, x2, c, word, 2, on, off, floor, EDGE, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH
    )
    _write_unit(
        grad, at + 3 * UNIT, lead, V, x3, c, word, 3, on, off, floor, EDGE, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH
    )


@triton.jit(do_not_specialize=["N", "last_room"])
def scale_grad_kernel(
    logits, grad, stride, N, V, last_room, words_each, rows_each,
    targets, strength, weight,
    ids, ids_stride, line, begin, end, words, earlier,
    out_loss, out_nll, out_mass, out_seen,
    smoothing,
    SET: tl.constexpr, LISTED: tl.constexpr, COMPLEMENT: tl.constexpr, SMOOTH: tl.constexpr, GRAD: tl.constexpr,
    SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    ALIKE: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
    LIST: tl.constexpr, MOST: tl.constexpr, LAST: tl.constexpr, WHOLE_TAIL: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Eq. 4–6. ALIKE: every so many rows start at the same place of an aligned group; a program takes such rows.

    `last_room`: how many columns the memory holds from the aligned start of the last row on. LAST: END or RAGGED.
    WHOLE_TAIL: the last tile, which the row fills only in part, is read whole, not unit by unit. KEEP (0 or 1): the
    last whole tile stays in registers until it is written.
    """
    UNIT: tl.constexpr = G * WIDTH
    TILE: tl.constexpr = UNIT * UNITS
    program = tl.program_id(0)
    first_row = (program // ALIKE) * (rows_each * ALIKE) + program % ALIKE
    words += program.to(tl.int64) * words_each
    old_line, old_begin, old_end = -1, 0, 0
    k, row_line, row_begin, row_end = load_row(first_row, N, V, targets, line, begin, end, SET | LISTED)
    change = load_tokens(ids + row_line.to(tl.int64) * ids_stride, row_begin, row_end, V, LIST) if SET else 0
    # Hoisted invariants would cost registers, and these the rows at work.
    for r in tl.range(rows_each, disable_licm=True):
        n = first_row + r * ALIKE
        base = n.to(tl.int64) * stride
        row = logits + (base // WIDTH) * WIDTH
        grad_row = grad + (base // WIDTH) * WIDTH
        lead = (base % WIDTH).to(tl.int32)
        room = tl.where(n == N - 1, last_room, 1 << 30)
        full = (lead + V) // TILE  # tiles that the row fills to the end
        next_k, next_line, next_begin, next_end = load_row(n + ALIKE, N, V, targets, line, begin, end, SET)
        if (k == -1) | (k == -3):
            skip_row(k, out_loss + n, out_nll + n, out_mass + n, out_seen + n, grad_row, lead, V, GRAD, G, WIDTH)
        if k >= 0:
            target_listed = False
            if SET:
                follow(
                    words, ids, ids_stride, lead, V, row_line, row_begin, row_end,
                    old_line, old_begin, old_end, change, G, WIDTH, UNITS, LIST,
                )  # fmt: skip
                old_line, old_begin, old_end = row_line, row_begin, row_end
                target_listed = has_bit(words, k + lead, G, WIDTH, UNITS)
            if LISTED:  # read here, gathered after the first tile, used after the last: nothing waits for it
                token, before = read_list(ids, earlier, ids_stride, row_line, row_begin, row_end, MOST)
            gamma = tl.full([], 1.0, tl.float32)
            if SET | LISTED:
                gamma = tl.load(strength + n)
            x_k = through_head(tl.load(row + lead + k), SOFTCAP, SCALE)

            # Each thread sums over its columns, relative to its own running maximum 2^c.
            c = tl.full([G, 1], LOWEST, tl.float32)
            mass = tl.zeros([G, 1], tl.float32)
            seen_sum, plain = mass, mass
            if full > 0:
                x0, x1, x2, x3 = read_tile(row, 0, lead, V, room, True, START, G, WIDTH)
                c, mass, seen_sum, plain = _add_tile(
                    x0, x1, x2, x3, words, 0, lead, V, c, mass, seen_sum, plain,
                    START, SET, COMPLEMENT, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                )  # fmt: skip
            if LISTED:
                token = distinct(token, before, row_begin, V)
                gathered = tl.load(row + lead + token, mask=token >= 0, other=0.0)
            for i in range(1, full - KEEP):
                x0, x1, x2, x3 = read_tile(row, i * TILE, lead, V, room, True, INNER, G, WIDTH)
                c, mass, seen_sum, plain = _add_tile(
                    x0, x1, x2, x3, words, i, lead, V, c, mass, seen_sum, plain,
                    INNER, SET, COMPLEMENT, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                )  # fmt: skip
            if WHOLE_TAIL:
                if lead + V > full * TILE:
                    x0, x1, x2, x3 = read_tile(row, full * TILE, lead, V, room, True, LAST, G, WIDTH)
                    c, mass, seen_sum, plain = _add_tile(
                        x0, x1, x2, x3, words, full, lead, V, c, mass, seen_sum, plain,
                        LAST, SET, COMPLEMENT, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
            else:
                for at in range(full * TILE, lead + V, UNIT):
                    c, mass, seen_sum, plain = _add_tail(
                        row, words, at, full, lead, V, room, c, mass, seen_sum, plain,
                        LAST, SET, COMPLEMENT, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
            if KEEP:
                y0 = tl.zeros([G, WIDTH], logits.dtype.element_ty)
                y1, y2, y3 = y0, y0, y0
                if full > 1:
                    y0, y1, y2, y3 = read_tile(row, (full - 1) * TILE, lead, V, room, False, INNER, G, WIDTH)
                    c, mass, seen_sum, plain = _add_tile(
                        y0, y1, y2, y3, words, full - 1, lead, V, c, mass, seen_sum, plain,
                        INNER, SET, COMPLEMENT, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
            if SET:
                first = first_change(next_line, next_begin, next_end, old_line, old_begin, old_end)
                change = load_tokens(ids + next_line.to(tl.int64) * ids_stride, first, next_end, V, LIST)
            highest = tl.max(c)
            fade = tl.exp2(c - highest)
            all_mass = tl.sum(mass * fade)
            seen_mass = tl.sum(seen_sum * fade)
            if LISTED:
                x_list = through_head(gathered, SOFTCAP, SCALE)
                target_listed = tl.max((token == k).to(tl.int32)) > 0
                seen_mass = tl.sum(tl.where(token >= 0, tl.exp2(tl.fma(x_list, LOG2E, -highest)), 0.0))

            # Eq. 4: novel tokens count γ times, discouraged ones once.
            seen = target_listed
            list_scale, rest_scale = 1.0, gamma
            if COMPLEMENT:
                seen = target_listed == 0
                list_scale, rest_scale = gamma, 1.0
            novel_mass = all_mass - seen_mass
            novel_mass = tl.where(novel_mass < 0, 0.0, novel_mass)  # by rounding alone; a maximum would hide NaN
            total = seen_mass + gamma * novel_mass
            k_scale = tl.where(seen, 1.0, gamma)
            to_target = -tl.fma(x_k, LOG2E, -highest)  # how far the target stands below the top, in powers of two
            loss = (to_target + tl.log2(total) - tl.log2(k_scale)) * LN2
            if SMOOTH:
                count = tl.zeros([G, 1], tl.int32)
                if SET:
                    for i in range(full + 1):
                        word = load_words(words, i, G)
                        count += tl.sum((word >> tl.arange(0, 32)[None, :]) & 1, 1, keep_dims=True)
                if LISTED:
                    count = (token >= 0).to(tl.int32)
                share = tl.sum(count) / V
                novel = share if COMPLEMENT else 1 - share
                to_mean = -tl.fma(tl.sum(plain) / V, LOG2E, -highest)
                uniform = (to_mean + tl.log2(total) - novel * tl.log2(gamma)) * LN2
                loss = (1 - smoothing) * loss + smoothing * uniform
            tl.store(out_loss + n, loss)
            tl.store(out_nll + n, (to_target + tl.log2(all_mass)) * LN2)
            tl.store(out_mass + n, seen_mass / all_mass)
            tl.store(out_seen + n, seen)

            if GRAD:  # Eq. 6: p̃ − q
                w = tl.load(weight + n)
                on = list_scale / total * w
                off = rest_scale / total * w
                floor = smoothing / V * w
                if KEEP:  # noqa: SIM102 - without it there is no y0 to compile
                    if full > 1:
                        _write_tile(
                            y0, y1, y2, y3, grad_row, words, full - 1, lead, V, highest, on, off, floor,
                            INNER, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                if WHOLE_TAIL:
                    if lead + V > full * TILE:
                        x0, x1, x2, x3 = read_tile(row, full * TILE, lead, V, room, False, LAST, G, WIDTH)
                        _write_tile(
                            x0, x1, x2, x3, grad_row, words, full, lead, V, highest, on, off, floor,
                            LAST, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                else:
                    for at in range(full * TILE, lead + V, UNIT):
                        word = load_words(words, full, G) if SET else 0
                        x = load_unit(row, at, lead, V, room, False, LAST, SOFTCAP, SCALE, G, WIDTH)
                        _write_unit(
                            grad_row, at, lead, V, x, highest, word, (at // UNIT) % UNITS, on, off, floor,
                            LAST, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
                        )  # fmt: skip
                for i in range(1 + KEEP, full):  # backwards: what was read last is still near
                    x0, x1, x2, x3 = read_tile(row, (full - i) * TILE, lead, V, room, False, INNER, G, WIDTH)
                    _write_tile(
                        x0, x1, x2, x3, grad_row, words, full - i, lead, V, highest, on, off, floor,
                        INNER, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
                if full > 0:
                    x0, x1, x2, x3 = read_tile(row, 0, lead, V, room, False, START, G, WIDTH)
                    _write_tile(
                        x0, x1, x2, x3, grad_row, words, 0, lead, V, highest, on, off, floor,
                        START, SET, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
                tl.debug_barrier()  # the gradients of list and target are written over what their units wrote
                if LISTED:
                    g_list = tl.exp2(tl.fma(x_list, LOG2E, -highest)) * on
                    if SMOOTH:
                        g_list -= floor
                    g_list = head_slope(g_list, x_list, SOFTCAP, SCALE).to(grad.dtype.element_ty)
                    tl.store(grad_row + lead + token, g_list, mask=(token >= 0) & (token != k))
                g_k = tl.exp2(-to_target) * (k_scale / total * w) - (1 - smoothing) * w
                if SMOOTH:
                    g_k -= floor
                tl.store(grad_row + lead + k, head_slope(g_k, x_k, SOFTCAP, SCALE).to(grad.dtype.element_ty))
        elif SET:
            first = first_change(next_line, next_begin, next_end, old_line, old_begin, old_end)
            change = load_tokens(ids + next_line.to(tl.int64) * ids_stride, first, next_end, V, LIST)
        k, row_line, row_begin, row_end = next_k, next_line, next_begin, next_end
