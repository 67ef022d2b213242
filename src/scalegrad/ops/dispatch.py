"""One place that decides which implementation runs, and runs it."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.ops import chunked, fused, reference, sparse
from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.sets import History, Members, TokenSet

Impl = Literal["auto", "reference", "sparse", "chunked", "triton"]

LOGITS_IMPLS = ("auto", "reference", "sparse", "triton")
LINEAR_IMPLS = ("auto", "reference", "chunked", "triton")


class Call(NamedTuple):
    """What is asked of an implementation, beside the logits or the hidden states."""

    rows: Rows
    discourage: TokenSet
    history: History
    objective: Objective
    total: bool  # the weighted sum, else each row's loss


def from_logits(logits: Tensor, call: Call, impl: str, inplace: bool) -> Losses:
    """`logits` [N, V]. The first field of the result is differentiable: the total, or the loss of each row."""
    members = _members(call, impl, fast="sparse", known=LOGITS_IMPLS, device=logits.device)
    if members is None:
        return _reference(logits, call)
    flat = fused.tensors(call.rows, members)
    with torch.autocast(logits.device.type, enabled=False):
        out = fused.Logits.apply(  # type: ignore[no-untyped-call]
            "sparse", logits, call.total, inplace, fused.settings(members, call.objective), *flat
        )
    return Losses(*out)


def from_linear(hidden: Tensor, weight: Tensor, bias: Tensor | None, call: Call, impl: str) -> Losses:
    """`hidden` [N, D], `weight` [V, D], `bias` [V]."""
    members = _members(call, impl, fast="chunked", known=LINEAR_IMPLS, device=hidden.device)
    if members is None:
        return _reference(F.linear(hidden, weight, bias), call)
    flat = fused.tensors(call.rows, members)
    with torch.autocast(hidden.device.type, enabled=False):
        out = fused.Linear.apply(  # type: ignore[no-untyped-call]
            "chunked", hidden, weight, bias, call.total, fused.settings(members, call.objective), *flat
        )
    return Losses(*out)


@torch.no_grad()
def statistics(
    head: tuple[Tensor] | tuple[Tensor, Tensor, Tensor | None],
    discourage: TokenSet,
    history: History,
    targets: Tensor,
    objective: Objective,
) -> tuple[Tensor, Tensor]:
    """Entropy and discouraged mass of each row, [N] each, from (logits,) or (hidden, weight, bias)."""
    members = discourage.compact(history)
    if members is None:  # no compact form: let each row list its own tokens
        mask = discourage.dense(history)
        ids = torch.arange(history.vocab, device=mask.device)
        members = Members.of_rows(torch.where(mask, ids, -1))
    if len(head) == 1:
        return sparse.statistics(head[0], targets, members, objective)
    return chunked.statistics(*head, targets, members, objective)


def _reference(logits: Tensor, call: Call) -> Losses:
    losses = reference.losses(logits, call.rows, call.discourage.dense(call.history), call.objective)
    return losses._replace(loss=(losses.loss * call.rows.weight).sum()) if call.total else losses


def _members(call: Call, impl: str, fast: str, known: tuple[str, ...], device: torch.device) -> Members | None:
    """The compact set for the fast path, or None: run the reference. One named outright never falls back, it raises."""
    if impl not in known:
        raise ValueError(f"impl must be one of {', '.join(known)}, not {impl!r}")
    if impl == "reference":
        return None
    if impl == "triton":
        raise ValueError(
            f"impl='triton' cannot run here: there are no GPU kernels for {device.type}; use {fast!r} or 'auto'"
        )
    members = call.discourage.compact(call.history)
    if members is None:
        problem = f"{call.discourage!r} has no compact form (it defines no members)"
    elif members.complement and call.objective.name == "unlikelihood":
        problem = f"unlikelihood on a complement, {call.discourage!r}, sums over nearly the whole vocabulary"
    else:
        return members
    if impl == "auto":
        _warn_once(f"the reference implementation runs, slow and dense: {problem}")
        return None
    raise ValueError(f"impl={impl!r} cannot run this: {problem}; use 'reference' or 'auto'")


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f"scalegrad: {message}", stacklevel=2)
