"""Unlikelihood on a GPU: the sums, then R over the discouraged tokens, then the gradient; the last two from the cache.

Only the largest probability can pass ½. It is kept apart as `top`, and everything else is measured against the second
largest, 2^c2: so log(1 − p) and p/(1 − p) stay exact however close to 1 the largest comes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from scalegrad.ops.triton_bits import bits_of, first_change, flip, follow, has_bit, load_tokens, load_words
from scalegrad.ops.triton_list import load_list
from scalegrad.ops.triton_tiles import (
    INNER,
    LN2,
    LOG2E,
    LOWEST,
    START,
    head_slope,
    load_tile,
    load_unit,
    skip_row,
    store_unit,
    through_head,
)


@triton.jit
def _rank_unit(x, at, peak, column, c2, others, plain, SMOOTH: tl.constexpr, G: tl.constexpr, WIDTH: tl.constexpr):
    if SMOOTH:
        plain += tl.sum(tl.where(x == LOWEST, 0.0, x), 1, keep_dims=True)
    best = tl.max(x, 1, keep_dims=True)
    lanes = tl.arange(0, WIDTH)[None, :]
    lane = tl.max(tl.where(x == best, lanes, 0), 1, keep_dims=True)
    x = tl.where(lanes == lane, LOWEST, x)
    loser = tl.minimum(peak, best)
    second = tl.maximum(c2, tl.maximum(tl.max(x, 1, keep_dims=True), loser) * LOG2E)
    others = others * tl.exp2(c2 - second) + tl.exp2(tl.fma(loser, LOG2E, -second))
    others += tl.sum(tl.exp2(tl.fma(x, LOG2E, -second)), 1, keep_dims=True)
    column = tl.where(best > peak, at + tl.arange(0, G)[:, None] * WIDTH + lane, column)
    return tl.maximum(peak, best), column, second, others, plain


@triton.jit
def _rank_tile(
    row, tile, lead, V, room, peak, column, c2, others, plain,
    EDGE: tl.constexpr, SMOOTH: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Each thread's largest (peak, where it stands), its second largest (2^c2), and the sum of all but the largest."""
    UNIT: tl.constexpr = G * WIDTH
    at = tile * (UNIT * UNITS)
    x0, x1, x2, x3 = load_tile(row, at, lead, V, room, True, EDGE, SOFTCAP, SCALE, G, WIDTH)
    peak, column, c2, others, plain = _rank_unit(x0, at, peak, column, c2, others, plain, SMOOTH, G, WIDTH)
    peak, column, c2, others, plain = _rank_unit(x1, at + UNIT, peak, column, c2, others, plain, SMOOTH, G, WIDTH)
    peak, column, c2, others, plain = _rank_unit(x2, at + 2 * UNIT, peak, column, c2, others, plain, SMOOTH, G, WIDTH)
    peak, column, c2, others, plain = _rank_unit(x3, at + 3 * UNIT, peak, column, c2, others, plain, SMOOTH, G, WIDTH)
    return peak, column, c2, others, plain


@triton.jit
def log_1_minus(p):
    """log(1 − p) for p ≤ ½; a series where 1 − p would round."""
    series = -p * (1 + p * (0.5 + p * (0.33333334 + p * 0.25)))
    return tl.where(p < 0.01, series, tl.log2(1 - p) * LN2)


@triton.jit
def _negative_unit(x, word, c2, to_p, odds, log_rest, mass, unit, WIDTH: tl.constexpr):
    p = tl.where(bits_of(word, unit, WIDTH), tl.exp2(tl.fma(x, LOG2E, -c2)) * to_p, 0.0)
    odds += tl.sum(p / (1 - p), 1, keep_dims=True)
    log_rest += tl.sum(log_1_minus(p), 1, keep_dims=True)
    return odds, log_rest, mass + tl.sum(p, 1, keep_dims=True)


@triton.jit
def _negative_tile(
    row, words, tile, lead, V, room, c2, to_p, odds, log_rest, mass,
    EDGE: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """R, Σ log(1 − p) and Σ p over the negatives, all of which are at most ½ here."""
    word = load_words(words, tile, G)
    x0, x1, x2, x3 = load_tile(row, tile * (G * WIDTH * UNITS), lead, V, room, True, EDGE, SOFTCAP, SCALE, G, WIDTH)
    odds, log_rest, mass = _negative_unit(x0, word, c2, to_p, odds, log_rest, mass, 0, WIDTH)
    odds, log_rest, mass = _negative_unit(x1, word, c2, to_p, odds, log_rest, mass, 1, WIDTH)
    odds, log_rest, mass = _negative_unit(x2, word, c2, to_p, odds, log_rest, mass, 2, WIDTH)
    odds, log_rest, mass = _negative_unit(x3, word, c2, to_p, odds, log_rest, mass, 3, WIDTH)
    return odds, log_rest, mass


@triton.jit
def _write_unit(
    grad, at, lead, V, x, word, unit, c2, to_p, factor, push, floor,
    DENSE: tl.constexpr, EDGE: tl.constexpr, SMOOTH: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    e = tl.exp2(tl.fma(x, LOG2E, -c2))
    g = e * factor
    if DENSE:
        p = e * to_p
        g += tl.where(bits_of(word, unit, WIDTH), push * p / (1 - p), 0.0)
    if SMOOTH:
        g -= floor
    store_unit(grad, at, lead, V, head_slope(g, x, SOFTCAP, SCALE), EDGE, G, WIDTH)


@triton.jit
def _write_tile(
    row, grad, words, tile, lead, V, room, c2, to_p, factor, push, floor,
    DENSE: tl.constexpr, EDGE: tl.constexpr, SMOOTH: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Eq. 7 away from top and target: p·(1 − αR) and, for a negative, + α·p/(1 − p)."""
    UNIT: tl.constexpr = G * WIDTH
    at = tile * (UNIT * UNITS)
    word = load_words(words, tile, G) if DENSE else 0
    x0, x1, x2, x3 = load_tile(row, at, lead, V, room, False, EDGE, SOFTCAP, SCALE, G, WIDTH)
    _write_unit(
        grad, at, lead, V, x0, word, 0, c2, to_p, factor, push, floor,
        DENSE, EDGE, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
    )  # fmt: skip
    _write_unit(
        grad, at + UNIT, lead, V, x1, word, 1, c2, to_p, factor, push, floor,
        DENSE, EDGE, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
    )  # fmt: skip
    _write_unit(
        grad, at + 2 * UNIT, lead, V, x2, word, 2, c2, to_p, factor, push, floor,
        DENSE, EDGE, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
    )  # fmt: skip
    _write_unit(
        grad, at + 3 * UNIT, lead, V, x3, word, 3, c2, to_p, factor, push, floor,
        DENSE, EDGE, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
    )  # fmt: skip


@triton.jit(do_not_specialize=["N", "last_room"])
def unlikelihood_kernel(
    logits, grad, stride, N, V, last_room, words_each, rows_each,
    targets, strength, weight,
    ids, ids_stride, line, begin, end, words, earlier,
    out_loss, out_nll, out_mass, out_seen,
    smoothing,
    LISTED: tl.constexpr, SMOOTH: tl.constexpr, GRAD: tl.constexpr, SOFTCAP: tl.constexpr, SCALE: tl.constexpr,
    ALIKE: tl.constexpr,
    G: tl.constexpr, WIDTH: tl.constexpr, UNITS: tl.constexpr,
    LIST: tl.constexpr, MOST: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Eq. 2 and 7. The program's rows and bits are as in the ScaleGrad kernel."""
    UNIT: tl.constexpr = G * WIDTH
    TILE: tl.constexpr = UNIT * UNITS
    program = tl.program_id(0)
    first_row = (program // ALIKE) * (rows_each * ALIKE) + program % ALIKE
    words += program.to(tl.int64) * words_each
    old_line, old_begin, old_end = -1, 0, 0
    for r in tl.range(rows_each, disable_licm=True):
        n = first_row + r * ALIKE
        if n < N:
            base = n.to(tl.int64) * stride
            row = logits + (base // WIDTH) * WIDTH
            grad_row = grad + (base // WIDTH) * WIDTH
            lead = (base % WIDTH).to(tl.int32)
            room = tl.where(n == N - 1, last_room, 1 << 30)
            full = (lead + V) // TILE
            k = tl.load(targets + n)
            k = tl.where(k < V, k, -3).to(tl.int32)  # as in `load_row`
            if k < 0:
                skip_row(k, out_loss + n, out_nll + n, out_mass + n, out_seen + n, grad_row, lead, V, GRAD, G, WIDTH)
            else:
                new_line = tl.load(line + n).to(tl.int32)
                new_begin = tl.load(begin + n).to(tl.int32)
                new_end = tl.load(end + n).to(tl.int32)
                k_column = k + lead
                if LISTED:
                    token = load_list(ids, earlier, ids_stride, new_line, new_begin, new_end, V, MOST)
                    x_list = through_head(tl.load(row + lead + token, mask=token >= 0, other=0.0), SOFTCAP, SCALE)
                    k_seen = tl.max((token == k).to(tl.int32)) > 0
                else:
                    first = first_change(new_line, new_begin, new_end, old_line, old_begin, old_end)
                    change = load_tokens(ids + new_line.to(tl.int64) * ids_stride, first, new_end, V, LIST)
                    follow(
                        words, ids, ids_stride, lead, V, new_line, new_begin, new_end,
                        old_line, old_begin, old_end, change, G, WIDTH, UNITS, LIST,
                    )  # fmt: skip
                    old_line, old_begin, old_end = new_line, new_begin, new_end
                    k_seen = has_bit(words, k_column, G, WIDTH, UNITS)
                x_k = through_head(tl.load(row + k_column), SOFTCAP, SCALE)
                alpha = tl.load(strength + n)

                peak = tl.full([G, 1], LOWEST, tl.float32)
                column = tl.zeros([G, 1], tl.int32) + lead
                others = tl.zeros([G, 1], tl.float32)
                # LOWEST stands above any LOWEST · log₂e, so a thread without columns adds exactly 0.
                c2, plain = peak, others
                if full > 0:
                    peak, column, c2, others, plain = _rank_tile(
                        row, 0, lead, V, room, peak, column, c2, others, plain,
                        START, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
                for i in range(1, full):
                    peak, column, c2, others, plain = _rank_tile(
                        row, i, lead, V, room, peak, column, c2, others, plain,
                        INNER, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                    )  # fmt: skip
                for at in range(full * TILE, lead + V, UNIT):
                    x = load_unit(row, at, lead, V, room, True, LAST, SOFTCAP, SCALE, G, WIDTH)
                    peak, column, c2, others, plain = _rank_unit(
                        x, at, peak, column, c2, others, plain, SMOOTH, G, WIDTH
                    )
                highest = tl.max(peak)
                winner = tl.max(tl.where(peak == highest, tl.arange(0, G)[:, None], 0))
                is_winner = tl.arange(0, G)[:, None] == winner
                top_column = tl.max(tl.where(is_winner, column, 0))
                losers = tl.where(is_winner, LOWEST, peak)
                second = tl.maximum(tl.max(c2), tl.max(losers) * LOG2E)
                rest = tl.sum(others * tl.exp2(c2 - second))
                rest += tl.sum(tl.where(is_winner, 0.0, tl.exp2(tl.fma(peak, LOG2E, -second))))

                gap = tl.fma(highest, LOG2E, -second)  # how far the first stands above the second, in powers of two
                tail = rest * tl.exp2(-gap)  # Σ p_j / p_top over the others
                log_sum = tl.where(tail < 1e-3, tail * (1 - tail * 0.5) * LOG2E, tl.log2(1 + tail))
                p_top = tl.exp2(-log_sum)
                to_p = tl.exp2(-gap - log_sum)
                log_1_minus_p_top = (tl.log2(rest) - gap - log_sum) * LN2

                # The negatives are C without the target; the top is counted apart.
                if LISTED:
                    top_negative = (tl.max((token + lead == top_column).to(tl.int32)) > 0) & (k_column != top_column)
                    e_list = tl.exp2(tl.fma(x_list, LOG2E, -second))
                    is_negative = (token >= 0) & (token != k) & (token + lead != top_column)
                    p_list = tl.where(is_negative, e_list * to_p, 0.0)
                    odds, log_rest = p_list / (1 - p_list), log_1_minus(p_list)
                    mass = p_list
                else:
                    # The bits of target and top are cleared while tiles are summed and written.
                    if k_seen:
                        flip(words, k_column, False, G, WIDTH, UNITS)
                    top_negative = has_bit(words, top_column, G, WIDTH, UNITS)
                    if top_negative:
                        flip(words, top_column, False, G, WIDTH, UNITS)
                    tl.debug_barrier()
                    odds = tl.zeros([G, 1], tl.float32)
                    log_rest, mass = odds, odds
                    for at in range(full * TILE, lead + V, UNIT):
                        word = load_words(words, full, G)
                        x = load_unit(row, at, lead, V, room, True, LAST, SOFTCAP, SCALE, G, WIDTH)
                        odds, log_rest, mass = _negative_unit(
                            x, word, second, to_p, odds, log_rest, mass, (at // UNIT) % UNITS, WIDTH
                        )
                    for i in range(1, full):  # backwards, and forwards again below: what was read last is still near
                        odds, log_rest, mass = _negative_tile(
                            row, words, full - i, lead, V, room, second, to_p, odds, log_rest, mass,
                            INNER, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                    if full > 0:
                        odds, log_rest, mass = _negative_tile(
                            row, words, 0, lead, V, room, second, to_p, odds, log_rest, mass,
                            START, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                odds_sum = tl.sum(odds)
                k_is_top = k_column == top_column
                to_target = (highest - x_k) * LOG2E
                p_k = tl.exp2(-to_target - log_sum)
                seen_mass = tl.sum(mass) + tl.where(k_seen, p_k, 0.0) + tl.where(top_negative, p_top, 0.0)
                nll = (to_target + log_sum) * LN2
                likelihood = nll
                if SMOOTH:
                    to_mean = (highest - tl.sum(plain) / V) * LOG2E
                    likelihood = (1 - smoothing) * nll + smoothing * (to_mean + log_sum) * LN2
                penalty = -tl.sum(log_rest) - tl.where(top_negative, log_1_minus_p_top, 0.0)
                tl.store(out_loss + n, likelihood + alpha * penalty)
                tl.store(out_nll + n, nll)
                tl.store(out_mass + n, seen_mass)
                tl.store(out_seen + n, k_seen)

                if GRAD:
                    w = tl.load(weight + n)
                    bystander = 1 - alpha * odds_sum  # 1 − αR without the top's share of R
                    push = tl.where(top_negative, alpha * p_top, 0.0)
                    factor = (to_p * bystander - push / tl.maximum(rest, 1e-37)) * w
                    floor = smoothing / V * w
                    if full > 0:
                        _write_tile(
                            row, grad_row, words, 0, lead, V, room, second, to_p, factor, alpha * w, floor,
                            not LISTED, START, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                    for i in range(1, full):
                        _write_tile(
                            row, grad_row, words, i, lead, V, room, second, to_p, factor, alpha * w, floor,
                            not LISTED, INNER, SMOOTH, SOFTCAP, SCALE, G, WIDTH, UNITS,
                        )  # fmt: skip
                    for at in range(full * TILE, lead + V, UNIT):
                        word = 0 if LISTED else load_words(words, full, G)
                        x = load_unit(row, at, lead, V, room, False, LAST, SOFTCAP, SCALE, G, WIDTH)
                        _write_unit(
                            grad_row, at, lead, V, x, word, (at // UNIT) % UNITS, second, to_p, factor, alpha * w,
                            floor,
                            not LISTED, LAST, SMOOTH, SOFTCAP, SCALE, G, WIDTH,
                        )  # fmt: skip
                    tl.debug_barrier()
                    if LISTED:
                        g_list = e_list * factor + tl.where(is_negative, odds * (alpha * w), 0.0)
                        if SMOOTH:
                            g_list -= floor
                        g_list = head_slope(g_list, x_list, SOFTCAP, SCALE).to(grad.dtype.element_ty)
                        tl.store(grad_row + lead + token, g_list, mask=token >= 0)
                        tl.debug_barrier()
                    # The top and the target: made once, in float32, over what their units wrote.
                    g_top = (p_top * bystander + push) * w
                    g_k = tl.exp2(tl.fma(x_k, LOG2E, -second)) * factor
                    if SMOOTH:
                        g_top -= floor
                        g_k -= floor
                    g_k = tl.where(k_is_top, g_top, g_k) - (1 - smoothing) * w
                    g_top = tl.where(k_is_top, g_k, g_top)
                    tl.store(
                        grad_row + top_column, head_slope(g_top, highest, SOFTCAP, SCALE).to(grad.dtype.element_ty)
                    )
                    tl.store(grad_row + k_column, head_slope(g_k, x_k, SOFTCAP, SCALE).to(grad.dtype.element_ty))
                tl.debug_barrier()
                if not LISTED:
                    if k_seen:
                        flip(words, k_column, True, G, WIDTH, UNITS)
                    if top_negative:
                        flip(words, top_column, True, G, WIDTH, UNITS)
