"""From what a model is called with to what a loss takes: shifting, what counts as seen, packed documents. Only here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.functional.inputs import Batch

IGNORED = -100  # a label that is no target, as everywhere in Hugging Face
MARKS = ("position_ids", "seq_idx", "cu_seq_lens_q", "cu_seq_lens_k", "attention_mask")  # arguments of a forward
_FORBIDDEN = -5000  # what is added to scores that attention must not use is below this, whatever its dtype


def causal_batch(
    labels: Tensor | None,
    *,
    shift_labels: Tensor | None = None,
    input_ids: Tensor | None = None,
    positions: Tensor | None = None,
    prompt: bool = False,
    num_items: int | Tensor | None = None,
    **marks: Any,
) -> Batch:
    """Targets and history for a model whose output at t predicts `labels[..., t + 1]`.

    The first label is no target, and counts as seen all the same: it is the paper's y¹. A position whose label is
    masked counts as seen only with `prompt`.

    Args:
        labels: [B, T], −100 where there is no target.
        shift_labels: [B, T] targets that were shifted before, in place of those made from `labels`.
        input_ids: [B, T] what the model reads.
        positions: [B, K], where a model that keeps some logits keeps them (`logit_positions`); the labels are of these
            or of whole rows.
        prompt: masked positions count as seen, by their `input_ids`.
        num_items: what the sum of the losses is divided by.
        marks: what tells packed documents apart, by the names of `documents.MARKS`. An `attention_mask` [B, T] is 0 at
            padding, which never counts as seen.

    >>> causal_batch(torch.tensor([[5, 6, 7]]))[:2]  # the targets, and the id that each step adds to what was seen
    (tensor([[   6,    7, -100]]), tensor([[5, 6, 7]]))
    """
    first_label_known = labels is not None
    if positions is not None:
        labels, shift_labels, first_label_known = _spread(labels, shift_labels, input_ids, positions)
    targets = _shifted(labels) if shift_labels is None else shift_labels
    if targets is None:
        raise ValueError("labels must be given, or shift_labels")
    for name, ids in (("labels", labels), ("input_ids", input_ids if prompt else None)):
        if ids is not None and ids.shape != targets.shape:
            raise ValueError(f"{name} must have the shape of the targets, {list(targets.shape)}, not {list(ids.shape)}")
    starts = document_starts(marks, targets.shape)
    segments = None if starts is None else starts.cumsum(1)
    if prompt:
        context: Tensor | None = _without_padding(_needed(input_ids), marks.get("attention_mask"))
    elif labels is None:
        context = None  # the targets themselves, from the step after each
    else:
        if not first_label_known:
            steps = torch.arange(targets.shape[1], device=targets.device)
            row_starts = (steps == 0).expand(targets.shape)
            starts = row_starts if starts is None else starts | row_starts
        context = labels if starts is None else _with_first_tokens(labels, starts, input_ids)
    return Batch(targets, context, None, segments, num_items)


def encoder_decoder_batch(
    labels: Tensor,
    *,
    input_ids: Tensor | None = None,
    attention_mask: Tensor | None = None,
    prompt: bool = False,
    num_items: int | Tensor | None = None,
) -> Batch:
    """Targets and history for a decoder whose output at t predicts `labels[..., t]`: nothing is shifted or dropped.

    With `prompt` the encoder's input counts as seen from the first step.

    >>> encoder_decoder_batch(torch.tensor([[6, 7]]), input_ids=torch.tensor([[3, 4]]), prompt=True).source
    tensor([[3, 4]])
    """
    source = _without_padding(_needed(input_ids), attention_mask) if prompt else None
    return Batch(labels, None, source, None, num_items)


def logit_positions(logits_to_keep: Any, shape: torch.Size, device: torch.device) -> Tensor | None:
    """[B, K] the positions of [B, T] that `logits_to_keep` of a forward names; None where it keeps all.

    >>> logit_positions(2, torch.Size([1, 5]), torch.device("cpu"))
    tensor([[3, 4]])
    """
    if logits_to_keep is None or (isinstance(logits_to_keep, int) and logits_to_keep == 0):
        return None
    steps = torch.arange(shape[1], device=device)
    if isinstance(logits_to_keep, int):
        return steps[-logits_to_keep:].expand(shape[0], -1)
    if logits_to_keep.dim() == 1:
        return steps[logits_to_keep.to(device)].expand(shape[0], -1)
    if logits_to_keep.dim() != 2 or logits_to_keep.dtype == torch.bool:
        raise ValueError(
            "logits_to_keep must be a number or a tensor of positions, [K] or [B, K], where an objective is attached, "
            f"not {logits_to_keep.dtype} of shape {list(logits_to_keep.shape)}"
        )
    positions: Tensor = logits_to_keep.to(device)
    return positions


def _spread(
    labels: Tensor | None, shift_labels: Tensor | None, input_ids: Tensor | None, positions: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """Labels and targets of whole rows, −100 where nothing is kept; and whether the labels are those of whole rows.

    A model keeps some logits and shifts the labels it was given by one: as many labels as logits are therefore the
    targets of all kept positions but the last.
    """
    short = _shifted(labels) if shift_labels is None else shift_labels
    if short is None:
        raise ValueError("labels must be given, or shift_labels")
    if input_ids is None:
        raise ValueError("logits_to_keep needs input_ids, for what was seen in the whole row, and the model got none")
    rows, steps = input_ids.shape
    nothing = torch.full((rows, steps), IGNORED, dtype=short.dtype, device=short.device)
    whole = short.shape[1] == steps
    if whole:
        targets = nothing.scatter(1, positions, short.gather(1, positions))
        return (F.pad(short, (1, 0), value=IGNORED)[:, :-1] if labels is None else labels), targets, labels is not None
    if short.shape != positions.shape:
        raise ValueError(
            f"labels must have one entry for each of {steps} inputs, or for each of {positions.shape[1]} logits that "
            f"logits_to_keep leaves, not the shape {list(short.shape)}"
        )
    targets = nothing.scatter(1, positions, short)
    spread = F.pad(targets, (1, 0), value=IGNORED)[:, :-1]
    if labels is not None:  # its first entry is no target: the label of the first kept position, or padding
        first = torch.where(labels[:, :1] >= 0, labels[:, :1], spread.gather(1, positions[:, :1]))
        spread = spread.scatter(1, positions[:, :1], first)
    return spread, targets, False


def _shifted(labels: Tensor | None) -> Tensor | None:
    return None if labels is None else F.pad(labels, (0, 1), value=IGNORED)[..., 1:]


def _with_first_tokens(labels: Tensor, starts: Tensor, input_ids: Tensor | None) -> Tensor:
    """`labels` with the first token of each packed document, y¹, back in its place.

    Collators that pack mask the label of a document's first token, since nothing before it predicts it. Where the
    label after it is a target, the document has no masked prompt: its first token counts as seen, as it would alone.
    """
    if input_ids is None:
        return labels
    follows = F.pad(labels, (0, 1), value=IGNORED)[:, 1:] >= 0
    same_document = ~F.pad(starts, (0, 1), value=True)[:, 1:]
    return torch.where(starts & (labels < 0) & follows & same_document, input_ids, labels)


def _needed(input_ids: Tensor | None) -> Tensor:
    if input_ids is None:
        raise ValueError("prompt=True needs input_ids, to know what the prompt says, and the model got none")
    return input_ids


def _without_padding(input_ids: Tensor, attention_mask: Any) -> Tensor:
    if not isinstance(attention_mask, Tensor) or attention_mask.dim() != 2:
        return input_ids
    return torch.where(last_columns(attention_mask, input_ids.shape[1]).bool(), input_ids, -1)


# ---- where the documents of packed rows start; nothing here waits for a GPU ------------------------------------------


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
