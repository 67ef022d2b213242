"""The losses on a GPU: which kernel runs on a batch of logits, and how many rows a program takes.

A program takes one row, or some rows one after the other where it keeps bits from row to row.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.ops.triton_bits import LIST
from scalegrad.ops.triton_list import claimed_use, earlier_use
from scalegrad.ops.triton_scale_grad import scale_grad_kernel
from scalegrad.ops.triton_tiles import END, RAGGED, UNITS, WIDTH
from scalegrad.ops.triton_unlikelihood import unlikelihood_kernel
from scalegrad.sets import Members

WARPS = 16
REGISTERS = 64  # of a thread: more would leave fewer rows at work
MOST_LISTED = 4096  # places of a list that are held as a list, beside the row; longer ones as bits
ROWS, MOST_ROWS = 16, 128  # of a program that keeps bits; they take at most 1/256 of half-precision logits
SCALED, SCALING_PROGRAMS = 8192, 1024  # elements that a program of `scale_` takes at a time, and how many programs


def fill(
    logits: Tensor,
    grad: Tensor | None,
    rows: Rows,
    members: Members,
    objective: Objective,
    repeats: Tensor | None = None,
) -> Losses:
    """Losses of all rows; their gradient, scaled by `rows.weight`, goes to `grad`, which may be `logits` itself.

    `repeats`: what `repeats_of` says of these members; made here where not given.
    """
    with torch.cuda.device_of(logits):  # kernels start on the current device
        return _fill(logits, grad, rows, members, objective, repeats)


def repeats_of(members: Members, objective: Objective, vocab: int) -> Tensor | None:
    """[L, W] which places of the lists repeat an id (see `triton_list`); None where they are not walked as lists."""
    if not _as_list(members, objective):
        return None
    with torch.cuda.device_of(members.ids):
        ids = members.ids.contiguous()
        return claimed_use(ids, vocab) if members.own_lines else earlier_use(ids)


def _fill(
    logits: Tensor,
    grad: Tensor | None,
    rows: Rows,
    members: Members,
    objective: Objective,
    repeats: Tensor | None,
) -> Losses:
    n, vocab = logits.shape
    if not _can_walk(logits, grad):
        aligned = logits.clone(memory_format=torch.contiguous_format)
        losses = _fill(aligned, None if grad is None else aligned, rows, members, objective, repeats)
        if grad is not None:
            grad.copy_(aligned)
        return losses
    loss, nll, mass = (torch.empty(n, dtype=torch.float32, device=logits.device) for _ in range(3))
    out = Losses(loss, nll, mass, torch.empty(n, dtype=torch.bool, device=logits.device))
    if n == 0:
        return out
    # Nothing is discouraged without a list, or everything: both are cross-entropy.
    has_set = members.ids.shape[1] > 0
    listed = _as_list(members, objective)
    has_bits = has_set and not listed

    group, stride = 32 * WARPS, logits.stride(0) if n > 1 else vocab
    unit, tile = group * WIDTH, group * WIDTH * UNITS
    alike = WIDTH // math.gcd(stride, WIDTH)
    rows_each = _rows_each(n, members.ids.shape[1], _at_work(logits.device)) if has_bits else 1
    programs = triton.cdiv(n, rows_each * alike) * alike
    words_each = ((vocab + WIDTH - 1) // tile + 1) * group
    ids = members.ids.contiguous()
    repeats = repeats_of(members, objective, vocab) if repeats is None else repeats
    words = torch.zeros(programs * words_each, dtype=torch.int32, device=logits.device) if has_bits else ids
    held = logits.untyped_storage().nbytes() // logits.element_size() - logits.storage_offset()
    last_room = min(held - (n - 1) * stride // WIDTH * WIDTH, 1 << 30)
    tensors = (
        logits, logits if grad is None else grad, stride, n, vocab, last_room, words_each, rows_each,
        *(column.contiguous() for column in rows),
        ids, ids.stride(0), members.line.contiguous(), members.begin.contiguous(), members.end.contiguous(), words,
        ids if repeats is None else repeats,
    )  # fmt: skip
    constants = {
        "SMOOTH": objective.label_smoothing > 0, "GRAD": grad is not None,
        "SOFTCAP": objective.softcap or 0.0, "SCALE": objective.logit_scale or 1.0,
        "ALIKE": alike, "G": group, "WIDTH": WIDTH, "UNITS": UNITS, "LIST": LIST,
        "LISTED": listed, "MOST": triton.next_power_of_2(ids.shape[1]) if listed else 1,
        "LAST": RAGGED if vocab % WIDTH or stride % WIDTH else END, "num_warps": WARPS, "maxnreg": REGISTERS,
    }  # fmt: skip
    if objective.name == "unlikelihood" and has_set:
        unlikelihood_kernel[(programs,)](*tensors, *out, objective.label_smoothing, **constants)
    else:
        constants |= {"SET": has_bits, "COMPLEMENT": has_set and members.complement}
        # The registers have no room for a whole tail beside bits or a long list, nor for a tile of float32 throughout.
        half = logits.element_size() == 2
        constants["WHOLE_TAIL"] = vocab % tile > unit and half and not has_bits and ids.shape[1] <= 1024
        constants["KEEP"] = int(half)
        scale_grad_kernel[(programs,)](*tensors, *out, objective.label_smoothing, **constants)
    if not has_set and members.complement:
        out.seen_mass.copy_(rows.targets >= 0)
        out.target_seen.copy_(rows.targets >= 0)
    return out


def _as_list(members: Members, objective: Objective) -> bool:
    """Is the set walked as a short list, not as bits? Where every row has its own list, repetitions are found by
    claims whose winner is up to the device: only for unlikelihood, which the bits would cost another reading."""
    short = 0 < members.ids.shape[1] <= MOST_LISTED and not members.complement
    return short and (objective.name == "unlikelihood" or not members.own_lines)


def _rows_each(n: int, width: int, at_work: int) -> int:
    """Rows of a program that keeps bits. It sets those of its first row one by one, up to `width` of them: the longer
    that may take, the more rows share it, as long as there are programs enough for every multiprocessor; and as many
    in each turn of the `at_work` programs as fit, so that the last turn leaves none idle.

    >>> _rows_each(131_072, 131_072, 264), _rows_each(131_072, 8192, 264), _rows_each(8192, 8192, 264)
    (125, 32, 16)
    """
    most = max(ROWS, min(MOST_ROWS, width // 256, n // 512))
    turns = triton.cdiv(n, most * at_work)
    return max(ROWS, int(triton.cdiv(n, turns * at_work)))


def _at_work(device: torch.device) -> int:
    """How many programs run at the same time."""
    each = 65_536 // (32 * WARPS * REGISTERS)  # registers of a multiprocessor, over those of a program
    return each * torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 256


def _can_walk(logits: Tensor, grad: Tensor | None) -> bool:
    """Do the rows lie one after the other from an aligned address, in both tensors alike?"""
    if grad is not None and (grad.stride() != logits.stride() or grad.data_ptr() % (WIDTH * grad.element_size())):
        return False
    return (
        logits.stride(1) == 1
        and logits.stride(0) >= logits.shape[1]
        and logits.data_ptr() % (WIDTH * logits.element_size()) == 0
    )


@triton.jit
def _scale_kernel(grad, factor, total, blocks, columns, PER_ROW: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply in place; where the one factor is 1, which the device alone knows, do nothing."""
    first = tl.load(factor)
    if PER_ROW | (first != 1.0):
        for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
            at = tl.cast(block, tl.int64) * BLOCK + tl.arange(0, BLOCK)
            by = tl.load(factor + at // columns, mask=at < total) if PER_ROW else first
            g = tl.load(grad + at, mask=at < total)
            tl.store(grad + at, (g.to(tl.float32) * by).to(grad.dtype.element_ty), mask=at < total)


def scale_(grad: Tensor, factor: Tensor) -> Tensor:
    """`grad.mul_(factor)`, a number or one for each row, without a pass over the memory where the number is 1."""
    if grad.numel():
        blocks, factor = triton.cdiv(grad.numel(), SCALED), factor.float().contiguous()
        with torch.cuda.device_of(grad):
            _scale_kernel[(min(blocks, SCALING_PROGRAMS),)](
                grad, factor, grad.numel(), blocks, grad.shape[-1], PER_ROW=factor.dim() > 0, BLOCK=SCALED
            )
    return grad
