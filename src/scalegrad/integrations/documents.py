"""Where the documents of packed rows start, from whatever marks them. Nothing here waits for a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

MARKS = ("position_ids", "seq_idx", "cu_seq_lens_q", "cu_seq_lens_k", "attention_mask")  # arguments of a forward
_FORBIDDEN = -5000  # what is added to scores that attention must not use is below this, whatever its dtype


def document_starts(marks: Mapping[str, Any], shape: torch.Size) -> Tensor | None:
    """[B, T] bool: does a document start here? It does wherever any of `marks` says so; None where nothing is marked.

    Args:
        marks: of MARKS, those that the model was called with.
        shape: [B, T] of the rows.

    >>> document_starts({"cu_seq_lens_q": torch.tensor([0, 2, 3])}, torch.Size([1, 3])).tolist()
    [[True, False, True]]
    """
    readers = {
        "position_ids": _from_positions,
        "seq_idx": _from_changes,
        "cu_seq_lens_q": _from_cumulative_lengths,
        "cu_seq_lens_k": _from_cumulative_lengths,
        "attention_mask": _from_mask,
    }
    all_starts = None
    for name in MARKS:
        if marks.get(name) is not None:
            starts = readers[name](marks[name], shape)
            if starts is not None:
                all_starts = starts if all_starts is None else all_starts | starts.to(all_starts.device)
    return all_starts


def text_positions(position_ids: Tensor) -> Tensor:
    """[B, T] of the positions that go up by one in text: the first of the four planes [4, B, T] of Qwen-VL models."""
    return position_ids[0] if position_ids.dim() == 3 else position_ids.reshape(-1, position_ids.shape[-1])


def _from_positions(position_ids: Tensor, shape: torch.Size) -> Tensor:
    planes = position_ids.shape[0] if position_ids.dim() == 3 else 1
    if planes not in (1, 3, 4) or position_ids.dim() > 3 or position_ids.shape[-1] != shape[1]:
        raise ValueError(
            f"position_ids must have the shape [B, {shape[1]}], as the labels, or [3, B, {shape[1]}] or "
            f"[4, B, {shape[1]}], not {list(position_ids.shape)}"
        )
    if planes == 3:
        # Time, height and width. They stand still or jump at an image: only a document's first token is 0 in all.
        return (position_ids == 0).all(0).expand(shape)
    positions = text_positions(position_ids)
    starts = torch.ones_like(positions, dtype=torch.bool)
    starts[:, 1:] = positions[:, 1:] != positions[:, :-1] + 1
    return starts.expand(shape)


def _from_changes(ids: Tensor, shape: torch.Size) -> Tensor:
    ids = ids.reshape(-1, ids.shape[-1])
    if ids.shape[1] != shape[1]:
        raise ValueError(f"seq_idx must have one number for each of {shape[1]} labels, not the shape {list(ids.shape)}")
    return F.pad(ids[:, 1:] != ids[:, :-1], (1, 0), value=True).expand(shape)


def _from_cumulative_lengths(lengths: Tensor, shape: torch.Size) -> Tensor:
    """Over the flattened rows, 0 first; the last one is where the text ends and starts nothing."""
    flat = torch.zeros(shape.numel() + 1, dtype=torch.bool, device=lengths.device)
    flat = flat.index_fill(0, lengths.flatten().long().clamp(max=shape.numel()), True)
    return flat[:-1].view(shape)


def _from_mask(mask: Any, shape: torch.Size) -> Tensor | None:
    """A mask [B, T] of document numbers (0: padding), or one [B, 1, T, T] that keeps documents from each other."""
    if isinstance(mask, Mapping):  # one for each kind of layer: all keep the same documents apart
        mask = next((value for value in mask.values() if isinstance(value, Tensor)), None)
    if not isinstance(mask, Tensor):
        return None  # of an attention kernel with a form of its own
    if mask.dim() == 4 and mask.shape[-2:] == (shape[1], shape[1]):
        allowed = mask[:, 0] if mask.dtype == torch.bool else mask[:, 0] > _FORBIDDEN
        itself = allowed.diagonal(dim1=1, dim2=2)  # not so at padding
        starts = itself[:, 1:] & itself[:, :-1] & ~allowed.diagonal(-1, 1, 2)
    elif mask.dim() == 2 and mask.dtype != torch.bool:
        numbers = last_columns(mask, shape[1])
        steps = torch.arange(shape[1], device=mask.device)
        last = torch.where(numbers > 0, steps, 0).cummax(1).values  # holes belong to the document before them
        numbers = numbers.gather(1, last)
        starts = (numbers[:, 1:] != numbers[:, :-1]) & (numbers[:, :-1] > 0)
    else:
        return None
    return torch.cat([starts.any(1, keepdim=True), starts], 1).expand(shape)  # a plain mask marks nothing


def last_columns(mask: Tensor, steps: int) -> Tensor:
    """[B, `steps`] of an attention mask that may begin with a prefix in the model's cache."""
    if mask.shape[1] < steps:
        raise ValueError(f"attention_mask must be as long as the labels, {steps}, not {mask.shape[1]}")
    return mask[:, mask.shape[1] - steps :]
