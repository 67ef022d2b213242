"""From what people pass to flat rows: options, shapes, devices and values checked, history built."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from scalegrad.counts import counted
from scalegrad.ops.dispatch import Impl, Linear, Logits
from scalegrad.sets import History, Seen, TokenSet

Reduction = Literal["mean", "sum", "none"]

SEEN = Seen()  # the paper's set, made once: a graph that is being compiled cannot make it
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


@dataclass(frozen=True)
class Options:
    """Settings that all losses share, checked.

    Args:
        discourage: C_t, the tokens to discourage; the paper's by default.
        ignore_index: targets with this value are left out of loss and history.
        label_smoothing: ε of q = (1 − ε)·1[k] + ε/V, as in torch; unlikelihood smooths its likelihood term only.
        reduction: "mean" over the targets kept (or `num_items`), "sum", or "none": [..., T], 0 at ignored targets.
        softcap: c of c·tanh(o/c) on the logits, as Gemma models use.
        logit_scale: a factor on the logits (before the cap), as Cohere models use.
        impl: "auto", or one by name: "reference", "sparse" (logits), "chunked" (linear), "triton".
        check: also look at values that cost a look: NaN logits, and everything on a GPU.
        return_parts: return `(loss, Parts)`.
    """

    discourage: TokenSet  # no default: torch 2.11 cannot make one in a graph that is being compiled
    ignore_index: int = -100
    label_smoothing: float = 0.0
    reduction: Reduction = "mean"
    softcap: float | None = None
    logit_scale: float | None = None
    impl: Impl = "auto"
    check: bool = False
    return_parts: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.discourage, TokenSet):
            raise ValueError(f"discourage must be a token set such as sets.Seen(), not {self.discourage!r}")
        if not isinstance(self.ignore_index, int):
            raise ValueError(f"ignore_index must be a whole number, not {self.ignore_index!r}")
        if not _is_number(self.label_smoothing) or not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be a number in [0, 1], not {self.label_smoothing!r}")
        if self.reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {self.reduction!r}")
        for name in ("softcap", "logit_scale"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < float("inf")):
                raise ValueError(f"{name} must be a positive number or None, not {value!r}")


class Batch(NamedTuple):
    """The integer side of a call."""

    targets: Tensor
    context: Tensor | None = None
    source: Tensor | None = None
    segments: Tensor | None = None
    num_items: int | Tensor | None = None


@dataclass(frozen=True, eq=False)
class Sequences:
    """The targets of a call as R rows of T steps."""

    targets: Tensor  # [R, T] int64, −1 where ignored
    history: History
    shape: torch.Size  # the targets' own shape, [..., T]

    @property
    def kept(self) -> Tensor:
        """[N] bool: the rows that have a target."""
        return self.targets.flatten() >= 0


def read_sequences(head: Logits | Linear, batch: Batch, options: Options) -> Sequences:
    """Check what belongs to the logits or hidden states, and say what becomes readable when."""
    name = "logits" if isinstance(head, Logits) else "hidden"
    check_targets(batch.targets, head[0].shape[:-1], head[0].device, of=name)
    if batch.segments is None:
        check_not_flattened(batch.targets, of=name)
    vocab = head.logits.shape[-1] if isinstance(head, Logits) else len(head.weight)
    sequences = rows_of(batch, vocab, options.ignore_index, may_sync=may_sync(head, options))
    if options.check:
        check_finite(name, head[0], sequences.kept.view(sequences.shape))
        for extra, value in (("weight", head.weight), ("bias", head.bias)) if isinstance(head, Linear) else ():
            if value is not None:
                check_finite(extra, value, torch.ones((), dtype=torch.bool, device=value.device))
    return sequences


def may_sync(head: Logits | Linear, options: Options) -> bool:
    """May values be read on the host? On a CPU always, elsewhere it waits for the device; never while compiling."""
    return not torch.compiler.is_compiling() and (options.check or head[0].device.type == "cpu")


def rows_of(batch: Batch, vocab: int, ignore_index: int, *, may_sync: bool) -> Sequences:
    """The integer inputs as rows, their shapes checked; with `may_sync` their values too."""
    targets, context, source, segments, _ = batch
    shape, device = targets.shape, targets.device
    for name, value in (("context", context), ("segments", segments)):
        _check_integers(name, value, device)
        if value is not None and value.shape != shape:
            raise ValueError(f"{name} must have the targets' shape {list(shape)}, not {list(value.shape)}")
    _check_integers("source", source, device)
    if source is not None and (source.dim() != len(shape) or source.shape[:-1] != shape[:-1]):
        raise ValueError(f"source must have the shape {[*shape[:-1], 'S']}, not {list(source.shape)}")
    if may_sync:
        _check_range("targets", targets, vocab, allowed=ignore_index)
        _check_range("context", context, vocab)
        _check_range("source", source, vocab)

    count, steps = shape[:-1].numel(), shape[-1]  # said outright: −1 is ambiguous when there are no steps
    rows = targets.reshape(count, steps).long()
    if ignore_index >= 0:
        rows = torch.where(rows == ignore_index, -1, rows)
    rows = rows.clamp(min=-1)
    start = None if segments is None else History.starts(segments.reshape(count, steps))
    if context is None:
        arrivals = rows.roll(1, 1)  # a target counts from the step after it
        arrivals[:, :1] = -1
        if start is not None:
            arrivals = torch.where(start == torch.arange(steps, device=device), -1, arrivals)
    else:
        arrivals = context.reshape(count, steps).long().clamp(min=-1)
    if source is not None:
        source = source.reshape(count, source.shape[-1]).long().clamp(min=-1)
    return Sequences(rows, History(arrivals, vocab, start, source), shape)


def check_logits(logits: Tensor, inplace: bool) -> Logits:
    """Logits [..., T, V] as the implementations take them."""
    check_floating("logits", logits, at_least=2)
    if logits.shape[-1] == 0:
        raise ValueError(f"logits must have a vocabulary of at least one token, not the shape {list(logits.shape)}")
    memory = logits if logits._base is None else logits._base
    if inplace and memory.is_leaf and memory.requires_grad:
        raise ValueError(
            "inplace=True would overwrite logits that are a leaf of the graph, or a view of one: "
            "pass the output of a model"
        )
    return Logits(logits, inplace)


def check_linear(hidden: Tensor, weight: Tensor, bias: Tensor | None, accum_dtype: torch.dtype | None) -> Linear:
    """Hidden states [..., T, D] and the output layer, cast as a linear layer casts them under autocast."""
    check_floating("hidden", hidden, at_least=2)
    check_floating("weight", weight, at_least=2)
    if accum_dtype not in (None, torch.float32):
        raise ValueError(f"accum_dtype must be None or torch.float32, not {accum_dtype!r}")
    width = hidden.shape[-1]
    if width == 0:
        raise ValueError(f"hidden must have at least one feature, not the shape {list(hidden.shape)}")
    if weight.dim() != 2 or weight.shape[1] != width or len(weight) == 0:
        raise ValueError(f"weight must have the shape [V, {width}] with V ≥ 1, not {list(weight.shape)}")
    if bias is not None:
        check_floating("bias", bias, at_least=1)
        if bias.shape != weight.shape[:1]:
            raise ValueError(f"bias must have the shape [{len(weight)}], not {list(bias.shape)}")
    autocast = torch.is_autocast_enabled(hidden.device.type)
    dtype = torch.get_autocast_dtype(hidden.device.type) if autocast else None
    hidden, weight = _cast(hidden, dtype), _cast(weight, dtype)
    bias = None if bias is None else _cast(bias, dtype)
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.device != hidden.device:
            raise ValueError(f"{name} is on {value.device} and hidden on {hidden.device}: they must be on one device")
        if value is not None and value.dtype != hidden.dtype:
            raise ValueError(f"{name} is {value.dtype} and hidden {hidden.dtype}: they must be of one dtype")
    return Linear(hidden, weight, bias, accum_dtype)


def _cast(value: Tensor, dtype: torch.dtype | None) -> Tensor:
    """As autocast does: float64 stays."""
    return value if dtype is None or value.dtype == torch.float64 else value.to(dtype)


def check_targets(targets: Tensor, shape: torch.Size, device: torch.device, of: str) -> None:
    """Targets must be integers of the shape that the logits or hidden states leave."""
    if not isinstance(targets, Tensor):
        raise ValueError(f"targets must be a tensor of token ids, not {type(targets).__name__}")
    _check_integers("targets", targets, device, of)
    if targets.dim() == 0 or targets.shape != shape:
        raise ValueError(
            f"targets must have the shape of {of} without its last dimension, {list(shape)}, not {list(targets.shape)}"
        )


def check_not_flattened(targets: Tensor, of: str) -> None:
    """Cross-entropy is called with `logits.view(-1, V)`: taken as one sequence, rows would see each other's tokens."""
    if targets.dim() == 1:
        last = "V" if of == "logits" else "D"
        raise ValueError(
            f"targets of shape {list(targets.shape)} do not say where a sequence ends: pass {of}[None], targets[None] "
            f"for one sequence, {of} [B, T, {last}] and targets [B, T] for a batch, or segments"
        )


def check_local(name: str, value: object) -> None:
    """A tensor whose values are all here: not on the meta device, and no DTensor."""
    if not isinstance(value, Tensor):
        return
    if value.device.type == "meta":
        raise ValueError(f"{name} is on the meta device and has no values: load or make it on a real device first")
    if type(value) in (Tensor, Parameter):  # nearly always, so that the rest costs nothing
        return
    module = sys.modules.get("torch.distributed.tensor")  # not imported here: no DTensor without it
    if module is not None and isinstance(value, module.DTensor):
        raise ValueError(
            f"{name} is a DTensor, and sharded inputs are not supported yet: pass {name}.full_tensor(), or "
            f"{name}.to_local() where each device holds whole sequences and the whole vocabulary"
        )


def check_floating(name: str, value: Tensor, at_least: int) -> None:
    """A floating-point tensor of enough dimensions, with its values here."""
    check_local(name, value)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must be a floating-point tensor, not {kind}")
    if value.dim() < at_least:
        raise ValueError(
            f"{name} must have at least {counted(at_least, 'dimension')}, not the shape {list(value.shape)}"
        )


def check_finite(name: str, value: Tensor, kept: Tensor) -> None:
    """Say where the first NaN of a row that is `kept` is. Infinities are allowed: −inf masks a token."""
    bad = value.isnan() & kept[..., None]
    if bool(bad.any()):
        first, *others = bad.nonzero().tolist()
        raise ValueError(
            f"{name} is NaN at {first}" + (f" and {counted(len(others), 'other place')}" if others else "")
        )


def _check_integers(name: str, value: Tensor | None, device: torch.device, of: str = "targets") -> None:
    if value is None:
        return
    if not isinstance(value, Tensor) or value.dtype not in _INTEGERS:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must be a tensor of integers, not {kind}")
    if value.device != device:
        raise ValueError(f"{name} is on {value.device} and {of} on {device}: they must be on one device")
    check_local(name, value)


def _check_range(name: str, ids: Tensor | None, vocab: int, allowed: int | None = None) -> None:
    """Ids below `vocab`; below 0 only the `allowed` value, or any where None (it counts for nothing)."""
    if ids is None or ids.numel() == 0:
        return
    ids = ids.long()  # compared as int8 or int16, a vocabulary of 50,257 would wrap around
    bad = ids >= vocab
    if allowed is not None:
        bad = (bad | (ids < 0)) & (ids != allowed)
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        extra = "or negative" if allowed is None else f"or ignore_index={allowed}"
        raise ValueError(f"{name} must be in [0, {vocab}) {extra}, not {int(ids[tuple(where)])} at {where}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
