"""What is looked at once, on the first training batch, since it would make every loss after it wrong.

The batch must be one that an attached loss can read, and at γ = 1 the loss must be the model's own. It may wait for
a GPU.
"""

from __future__ import annotations

import copy
import math
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalegrad._memory import free_memory
from scalegrad.functional.inputs import Batch
from scalegrad.integrations.labels import IGNORED, last_columns, text_positions
from scalegrad.integrations.routers import with_router_losses
from scalegrad.nn import ScaleGradLoss


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


def compare(model: Any, own: Any, attached: Tensor, batch: Batch, labels: Tensor | None) -> None:
    """Raise if the attached loss at γ = 1 is not the model's own.

    The model's own logits give a second value: where it is right, the difference comes from before them.

    Args:
        own: what the model's own forward gave for the batch, with its loss and its logits.
        attached: the loss of the attached path.
        batch: on the device of the logits.
        labels: as the model got them.
    """
    if own.loss is None or not bool((batch.targets >= 0).any()):
        return  # a model without a loss of its own, or a batch without a target: nothing to compare

    def from_logits(targets: Tensor) -> float:
        return float(with_router_losses(ScaleGradLoss(1.0)(own.logits, targets), own, model))

    loss, value, expected = float(own.loss), float(attached), from_logits(batch.targets)
    exact = _tolerance(own.loss.dtype, loss)
    if _near(expected, loss, exact) and _near(value, loss, exact + _rounding(model, own.logits, batch.targets)):
        return
    name = type(model).__name__
    causal = not model.config.is_encoder_decoder and labels is not None and labels.shape == batch.targets.shape
    if causal and _near(from_logits(labels.to(own.logits.device)), loss, exact):  # type: ignore[union-attr]
        raise ValueError(
            f"{name} cannot be trained by attach: its own loss, {loss:.8g} on this batch, does not shift the labels "
            f"(shifted it would be {expected:.8g}), so the model does not predict the next token"
        )
    where = "its output layer or its inputs are used in a way that attach does not know"
    if not _near(expected, loss, exact):
        where = f"its own logits give {expected:.8g}, so its loss has a part or a shift that attach does not know"
    raise ValueError(
        f"{name} has a loss of its own of {loss:.8g} on this batch, and the attached loss at γ = 1 is {value:.8g}, "
        f"where both must be equal: {where}; attach(..., self_check=False) trains without this check"
    )


def _near(value: float, expected: float, tolerance: float) -> bool:
    """Equal, or both not a number, as they are after an overflow."""
    return abs(value - expected) <= tolerance or value == expected or (value != value and expected != expected)


def _tolerance(dtype: torch.dtype, loss: float) -> float:
    """Of a mean in `dtype`: half precision rounds each term of it, the others mostly the sum."""
    eps = torch.finfo(dtype).eps
    relative = 2 * eps if eps > 1e-4 else max(64 * eps, 1e-8)
    return float(relative * (1 + abs(loss)))


def _rounding(model: Any, logits: Tensor, targets: Tensor) -> float:
    """How far the mean may move when each logit is rounded on its own: a model rounds them, the fused loss does not."""
    dtypes = {logits.dtype, model.dtype}
    if torch.is_autocast_enabled(logits.device.type):
        dtypes.add(torch.get_autocast_dtype(logits.device.type))
    eps = max(torch.finfo(dtype).eps for dtype in dtypes if dtype.is_floating_point)
    if logits.device.type == "cuda" and torch.get_float32_matmul_precision() != "highest":
        eps = max(eps, 2**-10)  # TF32
    largest = max(abs(float(end)) for end in torch.aminmax(logits))
    number = int((targets >= 0).sum())
    share = min(1.0, max(8 / math.sqrt(number), 1 / 8))  # a soft cap's rounding does not average out
    return float(eps * largest * share)


# ---- without leaving a trace -----------------------------------------------------------------------------------------


@contextmanager
def no_traces(model: nn.Module) -> Iterator[None]:
    """No gradients; random states and the model's buffers are afterwards what they were."""
    gpus = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    numpy, python_state = sys.modules.get("numpy"), random.getstate()  # some models mask their inputs by numpy's
    numpy_state = None if numpy is None else numpy.random.get_state()
    with torch.no_grad(), torch.random.fork_rng(gpus), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "None of the inputs have requires_grad")  # reentrant checkpoints
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy is not None:
                numpy.random.set_state(numpy_state)
            for module, name, buffer, before in buffers:
                module._buffers[name] = buffer
                if not torch.equal(buffer, before):
                    buffer.copy_(before)


def own_copies(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a forward, with copies of what it may change: a cache. Tensors by themselves stay."""
    return {name: value if isinstance(value, Tensor) else _own_copy(value) for name, value in arguments.items()}


def _own_copy(value: Any) -> Any:
    """Tensors are detached, for those with a history cannot be deep-copied."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        copies = [_own_copy(item) for item in value]
        return type(value)(*copies) if hasattr(value, "_fields") else type(value)(copies)
    if isinstance(value, dict):
        items = {key: _own_copy(item) for key, item in value.items()}
        return items if type(value) is dict else type(value)(**items)  # an encoder's output
    if "Cache" in type(value).__name__ or type(value).__module__ == "transformers.cache_utils":
        twin = copy.copy(value)
        twin.__dict__.update({name: _own_copy(item) for name, item in vars(value).items()})
        return twin
    return value


# ---- is there room? --------------------------------------------------------------------------------------------------


def has_room(model: Any, targets: Tensor) -> bool:
    """Is there memory for the logits of this batch and what a loss makes of them? Sharded models answer together.

    Ranks of a sharded model must run the same forwards, for each gathers weights from all.
    """
    vocab = getattr(model.config.get_text_config(decoder=True), "vocab_size", 0)
    device = model.device if targets.device.type == "cpu" else targets.device  # a trainer may leave labels behind
    needed = targets.numel() * vocab * (model.dtype.itemsize + 12)  # three copies in float32
    enough = torch.tensor(int(needed < free_memory(device)), device=device)
    for group in _sharding_groups(model):
        torch.distributed.all_reduce(enough, torch.distributed.ReduceOp.MIN, group=group)
    if not enough:
        warnings.warn(
            f"scalegrad: there is no memory for the self-check of attach ({needed / 2**30:.1f} GiB), so it is left out",
            stacklevel=2,
        )
    return bool(enough)


def _sharding_groups(model: nn.Module) -> list[Any]:
    """The process groups over which weights are gathered in a forward pass; None is the group of all."""
    parameters = list(model.parameters())
    for parameter in parameters:
        if hasattr(parameter, "device_mesh"):  # FSDP2, of a unit that is not gathered right now
            return list(parameter.device_mesh.get_all_groups())
    kinds = {kind.__name__ for module in model.modules() for kind in type(module).__mro__}
    sharded = not kinds.isdisjoint({"FSDPModule", "FullyShardedDataParallel"})
    return [None] if sharded or any(hasattr(p, "ds_id") for p in parameters) else []  # DeepSpeed's ZeRO-3 marks its own
