"""From what people pass to flat rows: shapes, devices and values checked, history built."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Parameter

from scalegrad.counts import counted
from scalegrad.sets import History

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


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


def read_sequences(
    targets: Tensor,
    vocab: int,
    *,
    context: Tensor | None,
    source: Tensor | None,
    segments: Tensor | None,
    ignore_index: int,
    look: bool,
) -> Sequences:
    """Check the integer inputs and say what becomes readable when.

    `look`: check values too, which waits for a GPU.
    """
    shape, device = targets.shape, targets.device
    for name, value in (("context", context), ("segments", segments)):
        _check_integers(name, value, device)
        if value is not None and value.shape != shape:
            raise ValueError(f"{name} must have the targets' shape {list(shape)}, not {list(value.shape)}")
    _check_integers("source", source, device)
    if source is not None and (source.dim() != len(shape) or source.shape[:-1] != shape[:-1]):
        raise ValueError(f"source must have the shape {[*shape[:-1], 'S']}, not {list(source.shape)}")
    if look:
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
