"""The losses as modules: they hold the options and do no mathematics."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from scalegrad.functional.inputs import SEEN, Batch, Options, Reduction, check_linear, check_logits
from scalegrad.functional.losses import Loss, scale_grad_loss, unlikelihood_loss
from scalegrad.gamma import Gamma, Schedule, at_step, check_alpha, check_gamma
from scalegrad.ops.dispatch import Impl, Linear, Logits
from scalegrad.sets import TokenSet


class _TokenLoss(nn.Module):
    """A loss on logits when called, on hidden states through `linear`."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        context: Tensor | None = None,
        source: Tensor | None = None,
        segments: Tensor | None = None,
        num_items: int | Tensor | None = None,
        inplace: bool = False,
    ) -> Loss:
        """Logits [..., T, V] and targets [..., T] to the loss; arguments as in `functional`."""
        return self.on_head(check_logits(logits, inplace), Batch(targets, context, source, segments, num_items))

    def linear(
        self,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        *,
        bias: Tensor | None = None,
        context: Tensor | None = None,
        source: Tensor | None = None,
        segments: Tensor | None = None,
        num_items: int | Tensor | None = None,
        accum_dtype: torch.dtype | None = None,
    ) -> Loss:
        """Hidden states [..., T, D] and the output layer's weight [V, D] to the loss, the logits never whole."""
        head = check_linear(hidden, weight, bias, accum_dtype)
        return self.on_head(head, Batch(targets, context, source, segments, num_items))

    def on_head(self, head: Logits | Linear, batch: Batch, options: Options | None = None) -> Loss:
        """From either kind of head; `options` in place of its own, for a trainer that needs others."""
        raise NotImplementedError

    def _strength(self) -> str:
        raise NotImplementedError

    def extra_repr(self) -> str:
        default = Options(SEEN)
        values = ((f.name, getattr(self.options, f.name)) for f in fields(Options))
        changed = [f"{name}={value!r}" for name, value in values if value != getattr(default, name)]
        return ", ".join([self._strength(), *changed])


class ScaleGradLoss(_TokenLoss):
    """ScaleGrad, `functional.scale_grad`, with its options.

    `step` is the training step, for a γ that follows a schedule: set it before each step (integrations do).

    >>> ScaleGradLoss(0.2, reduction="sum")
    ScaleGradLoss(gamma=0.2, reduction='sum')
    """

    def __init__(
        self,
        gamma: Gamma = 0.2,
        *,
        discourage: TokenSet = SEEN,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: Reduction = "mean",
        softcap: float | None = None,
        logit_scale: float | None = None,
        impl: Impl = "auto",
        check: bool = False,
        return_parts: bool = False,
    ) -> None:
        options = (discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check)
        super().__init__(Options(*options, return_parts=return_parts))
        if isinstance(gamma, (int, float)):
            check_gamma(gamma)
        self.gamma = gamma
        self.step = None

    @property
    def step(self) -> int | None:
        return self._step

    @step.setter
    def step(self, step: int | None) -> None:
        self._step = step
        known = isinstance(self.gamma, Schedule) and step is not None
        # For a compiled graph, which takes a number as a constant and would be made anew at each step.
        self._gamma_now = torch.tensor(at_step(self.gamma, step), dtype=torch.float64) if known else None

    def on_head(self, head: Logits | Linear, batch: Batch, options: Options | None = None) -> Loss:
        gamma: Any = self.gamma
        if isinstance(gamma, Schedule):
            compiled = torch.compiler.is_compiling() and self._gamma_now is not None
            gamma = self._gamma_now if compiled else at_step(gamma, self.step)
        return scale_grad_loss(head, batch, gamma, options or self.options)

    def _strength(self) -> str:
        return f"gamma={self.gamma!r}"


class UnlikelihoodLoss(_TokenLoss):
    """Unlikelihood, `functional.unlikelihood`, with its options.

    >>> UnlikelihoodLoss(0.5)
    UnlikelihoodLoss(alpha=0.5)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        discourage: TokenSet = SEEN,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: Reduction = "mean",
        softcap: float | None = None,
        logit_scale: float | None = None,
        impl: Impl = "auto",
        check: bool = False,
        return_parts: bool = False,
    ) -> None:
        options = (discourage, ignore_index, label_smoothing, reduction, softcap, logit_scale, impl, check)
        super().__init__(Options(*options, return_parts=return_parts))
        self.alpha = check_alpha(alpha)

    def on_head(self, head: Logits | Linear, batch: Batch, options: Options | None = None) -> Loss:
        return unlikelihood_loss(head, batch, self.alpha, options or self.options)

    def _strength(self) -> str:
        return f"alpha={self.alpha!r}"
