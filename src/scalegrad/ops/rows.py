"""What every implementation takes and gives back: flat rows, one for each predicted token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Objective:
    """Which loss, with the settings that change its numbers."""

    name: Literal["scale_grad", "unlikelihood"]
    label_smoothing: float = 0.0
    softcap: float | None = None
    logit_scale: float | None = None


class Rows(NamedTuple):
    """The N predictions of a batch.

    `weight` is what each row's loss counts for in the total (0 where ignored): its gradient is scaled by it.
    """

    targets: Tensor  # [N] int64, −1 where ignored
    strength: Tensor  # [N] γ or α, in the dtype of the arithmetic
    weight: Tensor  # [N] same dtype


class Losses(NamedTuple):
    """Per row, 0 where ignored. Half precision is computed in float32; float64 stays."""

    loss: Tensor  # [N]
    nll: Tensor  # [N] −log p_k, whatever the objective
    seen_mass: Tensor  # [N] π = Σ_{j ∈ C} p_j
    target_seen: Tensor  # [N] bool: is the target itself discouraged?


def head_logits(logits: Tensor, objective: Objective) -> Tensor:
    """The logits after the model's scale and soft cap, `c · tanh(s · o / c)`, in the dtype of the arithmetic."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if objective.logit_scale is not None:
        logits = logits * objective.logit_scale
    if objective.softcap is not None:
        logits = objective.softcap * torch.tanh(logits / objective.softcap)
    return logits
