"""One place that decides which implementation runs, and runs it."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.ops import fused, reference
from scalegrad.ops.rows import Losses, Objective, Rows
from scalegrad.sets import History, Members, TokenSet

Impl = Literal["auto", "reference", "sparse", "chunked", "triton"]

LOGITS_IMPLS = ("auto", "reference", "sparse", "triton")
LINEAR_IMPLS = ("auto", "reference", "chunked", "triton")


class Logits(NamedTuple):
    """Logits [..., V], given whole. `inplace`: the gradient may overwrite them."""

    logits: Tensor
    inplace: bool = False


class Linear(NamedTuple):
    """Hidden states [..., D] and the output layer's weight [V, D] and bias [V], from which logits are made."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None
    accum_dtype: torch.dtype | None = None  # in which the weight's gradient is summed; None: what suits the device


class Call(NamedTuple):
    """What is asked of an implementation, beside the logits or the hidden states."""

    rows: Rows
    discourage: TokenSet
    history: History
    objective: Objective
    total: bool  # the weighted sum, else each row's loss


def run(head: Logits | Linear, call: Call, impl: str) -> Losses:
    """The losses of N rows. The first field is differentiable: the total, or the loss of each row."""
    return _from_logits(head, call, impl) if isinstance(head, Logits) else _from_linear(head, call, impl)


def _from_logits(head: Logits, call: Call, impl: str) -> Losses:
    logits = head.logits.reshape(-1, head.logits.shape[-1])
    name, members = _choose(call, impl, logits, torch_impl="sparse", triton_impl="triton", known=LOGITS_IMPLS)
    if members is None:
        return _reference(logits, call)
    if not torch.is_grad_enabled():  # an autograd function cannot tell: it would make the gradient, and in place
        logits = logits.detach()
    inplace = head.inplace and 0 not in logits.stride()  # expanded logits share memory and cannot hold a gradient
    flat = fused.tensors(call.rows, members)
    with torch.autocast(logits.device.type, enabled=False):
        out = fused.Logits.apply(  # type: ignore[no-untyped-call]
            name, logits, call.total, inplace, fused.settings(members, call.objective), *flat
        )
    return Losses(*out)


def _from_linear(head: Linear, call: Call, impl: str) -> Losses:
    hidden, weight, bias, accum_dtype = head
    hidden = hidden.reshape(-1, hidden.shape[-1])
    name, members = _choose(call, impl, hidden, torch_impl="chunked", triton_impl="triton linear", known=LINEAR_IMPLS)
    if members is None:
        hidden = hidden.masked_fill(call.rows.targets[:, None] < 0, 0.0)  # 0 · NaN would reach the weight's gradient
        return _reference(F.linear(hidden, weight, bias), call)
    if not torch.is_grad_enabled():
        hidden, weight, bias = hidden.detach(), weight.detach(), None if bias is None else bias.detach()
    flat, in_float32 = fused.tensors(call.rows, members), accum_dtype is not None
    with torch.autocast(hidden.device.type, enabled=False):
        out = fused.Linear.apply(  # type: ignore[no-untyped-call]
            name, hidden, weight, bias, call.total, in_float32, fused.settings(members, call.objective), *flat
        )
    return Losses(*out)


@torch.no_grad()
def statistics(
    head: Logits | Linear, discourage: TokenSet, history: History, targets: Tensor, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Entropy and discouraged mass of each row, [N] each."""
    members = discourage.compact(history)
    if members is None:  # no compact form: let each row list its own tokens
        mask = discourage.dense(history)
        ids = torch.arange(history.vocab, device=mask.device)
        members = Members.of_rows(torch.where(mask, ids, -1))
    values = head[0].detach()
    flat = values.reshape(-1, values.shape[-1])
    weight, bias = (None, None) if isinstance(head, Logits) else (head.weight, head.bias)
    return fused.statistics(flat, weight, bias, targets, members, objective)


def _reference(logits: Tensor, call: Call) -> Losses:
    losses = reference.losses(logits, call.rows, call.discourage.dense(call.history), call.objective)
    return losses._replace(loss=(losses.loss * call.rows.weight).sum()) if call.total else losses


def _choose(
    call: Call, impl: str, values: Tensor, torch_impl: str, triton_impl: str, known: tuple[str, ...]
) -> tuple[str, Members | None]:
    """The fast path and its compact set, or None: run the reference. One named outright never falls back, it raises."""
    if impl not in known:
        raise ValueError(f"impl must be one of {', '.join(known)}, not {impl!r}")
    if impl == "reference":
        return impl, None
    kernels_cannot = why_not_triton(values)
    if impl == "triton" and kernels_cannot:
        raise ValueError(f"impl='triton' cannot run this: {kernels_cannot}; use {torch_impl!r} or 'auto'")
    members = call.discourage.compact(call.history)
    if members is None:
        problem = f"{call.discourage!r} has no compact form (it defines no members)"
    elif members.complement and call.objective.name == "unlikelihood":
        problem = f"unlikelihood on a complement, {call.discourage!r}, sums over nearly the whole vocabulary"
    else:
        return torch_impl if kernels_cannot or impl == torch_impl else triton_impl, members
    if impl == "auto":
        _warn_once(f"the reference implementation runs, slow and dense: {problem}")
        return impl, None
    raise ValueError(f"impl={impl!r} cannot run this: {problem}; use 'reference' or 'auto'")


def why_not_triton(values: Tensor) -> str | None:
    """A reason, or None where the kernels run: a GPU, or a CPU under Triton's interpreter."""
    if not _HAS_TRITON:
        return "Triton is not installed"
    if values.device.type != "cuda" and not (_INTERPRETED and values.device.type == "cpu"):
        return f"there are no kernels for {values.device.type}"
    if torch.version.hip:
        return "the kernels are for NVIDIA GPUs"
    if values.dtype not in (torch.bfloat16, torch.float16, torch.float32):
        return f"there are no kernels for {values.dtype}"
    return None


_HAS_TRITON = find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f"scalegrad: {message}", stacklevel=2)


# A graph that is being compiled calls it then and there. All that torch.compiler.assume_constant_result does, which
# would load the compiler (1.5 s) for everyone.
_warn_once.__dict__["_dynamo_marked_constant"] = True
