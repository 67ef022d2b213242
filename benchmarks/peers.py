"""Other people's losses, each called as its package means it to be called.

Each takes the case's inputs, then a `Batch`, and gives the mean loss. Packages are optional: an absent one is
`Unavailable`. All but the last two are plain cross-entropy.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.cases import Batch
from benchmarks.exact import GAMMA
from benchmarks.runner import Unavailable

Loss = Callable[..., Tensor]

FILTERED = "CE cut-cross-entropy (filters)"  # gives other gradients by design: its error is told, not judged


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Plain torch, eager."""
    return F.cross_entropy(logits.flatten(0, -2), batch.targets.flatten())


def linear_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch) -> Tensor:
    """Plain torch, eager, the logits whole in memory."""
    return cross_entropy(F.linear(hidden, weight), batch)


@functools.cache
def _compiled(function: Callable[..., Tensor]) -> Any:
    return torch.compile(function, dynamic=False)


def _flat_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def _flat_linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return _flat_cross_entropy(F.linear(hidden, weight), targets)


def compiled_cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Plain torch through `torch.compile`."""
    loss: Tensor = _compiled(_flat_cross_entropy)(logits, batch.targets)
    return loss


def compiled_linear_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch) -> Tensor:
    """Plain torch through `torch.compile`, the output layer compiled with the loss."""
    loss: Tensor = _compiled(_flat_linear_cross_entropy)(hidden, weight, batch.targets)
    return loss


def native_linear_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch) -> Tensor:
    """`F.linear_cross_entropy` of torch ≥ 2.13, in chunks."""
    if not hasattr(F, "linear_cross_entropy"):
        raise Unavailable(f"torch {torch.__version__} has no F.linear_cross_entropy (2.13 has)")
    nn: Any = torch.nn  # an older torch has no types for it either
    flat, targets, chunks = hidden.flatten(0, -2), batch.targets.flatten(), nn.LinearCrossEntropyOptions()
    loss: Tensor = nn.functional.linear_cross_entropy(flat, weight, targets, options=chunks)
    return loss


def liger_cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Liger's, which writes the gradient over the logits."""
    liger = _package("liger_kernel.transformers.functional", "liger-kernel", logits)
    loss: Tensor = liger.liger_cross_entropy(logits.flatten(0, -2), batch.targets.flatten())
    return loss


def liger_linear_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch) -> Tensor:
    """Liger's fused linear cross-entropy with its defaults (the weight's gradient accumulates in its own dtype)."""
    liger = _package("liger_kernel.transformers.functional", "liger-kernel", hidden)
    flat, targets = hidden.flatten(0, -2), batch.targets.flatten()
    loss: Tensor = liger.liger_fused_linear_cross_entropy(flat, weight, targets)
    return loss


def cut_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch, **options: None) -> Tensor:
    """Apple's, with its defaults: parts of the gradients below a threshold are skipped."""
    package = _package("cut_cross_entropy", "cut-cross-entropy", hidden)
    loss: Tensor = package.linear_cross_entropy(hidden, weight, batch.targets, **options)
    return loss


def exact_cut_cross_entropy(hidden: Tensor, weight: Tensor, batch: Batch) -> Tensor:
    """Apple's, told to skip nothing: the function that the others compute."""
    return cut_cross_entropy(hidden, weight, batch, filter_eps=None)


@functools.cache
def _import(module: str, distribution: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name == module.split(".")[0]:
            raise Unavailable(f"{distribution} is not installed") from None
        raise Unavailable(f"{distribution} needs {missing.name}, which is not installed") from None


def _package(module: str, distribution: str, value: Tensor) -> Any:
    found = _import(module, distribution)
    if value.device.type != "cuda":
        raise Unavailable(f"{distribution} needs a CUDA device")
    return found


def dense_scale_grad(logits: Tensor, batch: Batch) -> Tensor:
    """ScaleGrad as one would first write Eq. 4: a [B, T, V] mask of seen tokens, rescale, renormalise."""
    p, targets = logits.softmax(-1), batch.targets
    seen = torch.zeros_like(p, dtype=torch.bool)
    for t in range(1, targets.shape[1]):
        seen[:, t] = seen[:, t - 1].scatter(1, targets[:, t - 1 : t], True)
    scaled = torch.where(seen, p, GAMMA * p)
    rescaled = scaled / scaled.sum(-1, keepdim=True)
    return F.nll_loss(rescaled.log().flatten(0, -2), targets.flatten())


def bias_scale_grad(logits: Tensor, batch: Batch) -> Tensor:
    """ScaleGrad as a bias of log 1/γ on the seen tokens, added in eager torch, then cross-entropy."""
    targets = batch.targets
    steps = torch.arange(targets.shape[1], device=targets.device)
    first = steps.new_full((len(targets), logits.shape[-1]), len(steps))  # [B, V] the step a token first appears at
    first.scatter_reduce_(1, targets, steps.expand_as(targets), "amin")
    seen = first[:, None] < steps[:, None]  # [B, T, V]
    return cross_entropy(logits + seen.to(logits.dtype) * math.log(1 / GAMMA), batch)


LOGITS: dict[str, Loss] = {
    "CE torch eager": cross_entropy,
    "CE torch compiled": compiled_cross_entropy,
    "CE Liger": liger_cross_entropy,
    "SG eager bias": bias_scale_grad,
    "SG dense": dense_scale_grad,
}
LINEAR: dict[str, Loss] = {
    "CE torch eager": linear_cross_entropy,
    "CE torch compiled": compiled_linear_cross_entropy,
    "CE F.linear_cross_entropy": native_linear_cross_entropy,
    "CE Liger": liger_linear_cross_entropy,
    "CE cut-cross-entropy": exact_cut_cross_entropy,
    FILTERED: cut_cross_entropy,
}
