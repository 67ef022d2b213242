"""From what a model is called with to what a loss takes: shifting, what counts as seen, packed documents. Only here."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.functional.losses import Batch

IGNORED = -100  # a label that is no target, as everywhere in Hugging Face


def causal_batch(
    labels: Tensor | None,
    *,
    shift_labels: Tensor | None = None,
    input_ids: Tensor | None = None,
    attention_mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    prompt: bool = False,
    num_items: int | Tensor | None = None,
) -> Batch:
    """Targets and history for a model whose output at t predicts `labels[..., t + 1]`.

    The first label is no target, and counts as seen all the same: it is the paper's y¹. A position whose label is
    masked counts as seen only with `prompt`.

    Args:
        labels: [B, T], −100 where there is no target.
        shift_labels: [B, T] targets that were shifted before, in place of those made from `labels`.
        input_ids: [B, T] what the model reads.
        attention_mask: [B, T], 0 at padding, which never counts as seen. Other shapes are not read.
        position_ids: [B, T] or [1, T]; where they do not go up by one, a packed row starts its next document.
        prompt: masked positions count as seen, by their `input_ids`.
        num_items: what the sum of the losses is divided by.

    >>> causal_batch(torch.tensor([[5, 6, 7]]))[:2]  # the targets, and the id that each step adds to what was seen
    (tensor([[   6,    7, -100]]), tensor([[5, 6, 7]]))
    """
    targets = _shifted(labels) if shift_labels is None else shift_labels
    if targets is None:
        raise ValueError("labels must be given, or shift_labels")
    starts = _starts(position_ids, targets)
    segments = None if starts is None else starts.cumsum(1)
    if prompt:
        context: Tensor | None = _without_padding(_needed(input_ids), attention_mask)
    elif labels is None:
        context = None  # the targets themselves, from the step after each
    else:
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


def _shifted(labels: Tensor | None) -> Tensor | None:
    return None if labels is None else F.pad(labels, (0, 1), value=IGNORED)[..., 1:]


def _starts(position_ids: Tensor | None, targets: Tensor) -> Tensor | None:
    """[B, T] bool: does a document start here? None where no row is packed, or positions are not one a token."""
    if position_ids is None or position_ids.dim() != 2 or position_ids.shape[1] != targets.shape[1]:
        return None
    fresh = torch.ones_like(position_ids, dtype=torch.bool)
    fresh[:, 1:] = position_ids[:, 1:] != position_ids[:, :-1] + 1
    return fresh.expand(targets.shape)


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


def _without_padding(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    if attention_mask is None or attention_mask.shape != input_ids.shape:
        return input_ids
    return torch.where(attention_mask.bool(), input_ids, -1)
