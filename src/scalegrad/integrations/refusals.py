"""What is seen once, on the first training batch, and would make every loss after it wrong. It may wait for a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad.integrations.documents import last_columns, text_positions
from scalegrad.integrations.labels import IGNORED


def refuse_sequence_parallelism() -> None:
    """A process that reads one part of each row cannot know what the parts before it said."""
    for kind, size in _sequence_parallelism():
        if size > 1:
            raise ValueError(
                f"{kind} splits each row over {size} processes, and an attached objective would forget what the other "
                "processes read: train without it"
            )


def _sequence_parallelism() -> Iterator[tuple[str, int]]:
    """(kind, number of processes), of what is loaded; nothing is loaded for it."""
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    config = getattr(state, "_shared_state", {}).get("parallelism_config")
    yield "context parallelism", int(getattr(config, "cp_size", None) or 1)
    yield "sequence parallelism", int(getattr(config, "sp_size", None) or 1)
    groups = sys.modules.get("deepspeed.utils.groups")
    if groups is not None and hasattr(groups, "_get_sequence_parallel_world_size"):
        yield "DeepSpeed's sequence parallelism", int(groups._get_sequence_parallel_world_size())
    attention = F.scaled_dot_product_attention  # which torch's context_parallel replaces while it is on
    if "context_parallel" in (getattr(attention, "__module__", None) or "") and torch.distributed.is_initialized():
        yield "torch's context_parallel", torch.distributed.get_world_size()


def refuse_wrong_labels(labels: Tensor | None, shift_labels: Tensor | None) -> None:
    """Both are given: the targets, and what was seen before each."""
    if labels is None or shift_labels is None or labels.shape != shift_labels.shape:
        return
    before, after = shift_labels[..., :-1].to(labels.device), labels[..., 1:]
    if bool(((before == after) | (before == IGNORED) | (after == IGNORED)).all()):
        return
    same = torch.equal(labels, shift_labels.to(labels.device))
    raise ValueError(
        f"labels must be the targets before shifting, and here they are {'equal to' if same else 'others than'} "
        "shift_labels: sequence parallelism passes them so, and each target would count as seen at its own step; "
        "pass shift_labels alone if each row is whole"
    )


def refuse_parts_of_rows(position_ids: Tensor | None, attention_mask: Any) -> None:
    """A row that does not begin at position 0 is a part of a longer one, whose beginning another process has."""
    if position_ids is None:
        return
    positions = text_positions(position_ids)
    first = positions.new_zeros(positions.shape[0], 1)
    if isinstance(attention_mask, Tensor) and attention_mask.dim() == 2:
        there = last_columns(attention_mask, positions.shape[1]) > 0
        first = there.int().argmax(1, keepdim=True)  # after padding on the left, which may be counted or not
        positions = positions.expand(there.shape[0], -1)
    begins = positions.gather(1, first.to(positions.device))
    wrong = (begins != 0) & (begins != first.to(begins.device))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0, 0])
        raise ValueError(
            f"position_ids must begin at 0 in each row, and row {row} begins at {int(begins[row])}: what was read "
            "before it, perhaps by another process (context parallelism), would count as not seen"
        )


def refuse_unknown_labels(spread: Tensor, input_ids: Tensor) -> None:
    """Labels as short as the logits that are kept: does each stand one place after the position that predicts it?"""
    wrong = (spread >= 0) & (spread != input_ids.to(spread.device))
    if bool(wrong.any()):
        row, step = wrong.nonzero()[0].tolist()
        raise ValueError(
            "labels that are as short as logits_to_keep must be the inputs that follow the kept positions, and "
            f"{int(spread[row, step])} would follow where row {row} reads {int(input_ids[row, step])} at {step}: "
            "pass the labels of whole rows"
        )


def refuse_lengths(cumulative: Tensor | None, tokens: int) -> None:
    """Cumulative lengths of packed documents must end where the rows end."""
    if cumulative is not None and int(cumulative.max()) != tokens:
        raise ValueError(f"cu_seq_lens_q must end at the number of labels, {tokens}, not at {int(cumulative.max())}")


def refuse_late_attachment(causal: bool) -> None:
    """Trainer reads from a model how to count targets when it is built: attached after that, it counts otherwise."""
    trainer = _calling_trainer()
    shifts = getattr(trainer, "_loss_shifts_labels", True) or not causal
    if trainer is not None and not (getattr(trainer, "model_accepts_loss_kwargs", True) and shifts):
        raise ValueError(
            "the objective was attached after Trainer was built, which then counts the targets as the model's own loss "
            "would: call hf.attach(model, loss) before Trainer(model, ...)"
        )


def _calling_trainer() -> Any:
    """The Hugging Face Trainer that is calling, if one is: it leaves no trace in the model or the arguments."""
    frame: FrameType | None = sys._getframe(1)  # this frame's own locals would hold it, and the whole graph, in a cycle
    while frame is not None:
        caller = frame.f_locals.get("self")
        if any(f"{kind.__module__}.{kind.__name__}" == "transformers.trainer.Trainer" for kind in type(caller).__mro__):
            return caller
        frame = frame.f_back
    return None
