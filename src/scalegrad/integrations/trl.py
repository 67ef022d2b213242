"""TRL's `SFTTrainer` with an objective: packing, completion-only and assistant-only as TRL does them.

TRL computes its loss around the model's forward. A model with an objective attached therefore raises in a plain
`SFTTrainer`; here it trains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalegrad.extras import need
from scalegrad.integrations import hf
from scalegrad.integrations.callback import StepCallback
from scalegrad.integrations.hf import write_card
from scalegrad.objectives import TokenLoss

_trl: Any = need("trl", extra="trl")
_Trainer: Any = need("transformers", extra="trl").Trainer


class ScaleGradSFTTrainer(_trl.SFTTrainer):  # type: ignore[misc]
    """`SFTTrainer(model, args, ...)` that trains `loss`.

    The logs have `nll` and `seen_mass` of training beside the loss. Evaluation is TRL's own: the plain −log p.

    Args:
        model, args, and what follows by name: TRL's.
        loss: the objective; packed documents are kept apart in what counts as seen.
        prompt: tokens that are no target (a prompt, the user's turns) count as seen too.
        self_check: as in `hf.attach`.
    """

    def __init__(
        self,
        model: Any,
        args: Any = None,
        *,
        loss: TokenLoss,
        prompt: bool = False,
        self_check: bool = True,
        **trl_arguments: Any,
    ) -> None:
        if args is not None and getattr(args, "loss_type", "nll") not in (None, "nll"):
            raise ValueError(f"args.loss_type must be left alone: `loss` is the objective, not {args.loss_type!r}")
        if args is not None and args.label_smoothing_factor:
            raise ValueError("args.label_smoothing_factor must be 0: give label_smoothing to the loss")
        if trl_arguments.get("compute_loss_func") is not None:
            raise ValueError("compute_loss_func must be None: `loss` is the objective")
        super().__init__(model, args, **trl_arguments)
        inner = hf.inner_model(self.model)
        if hasattr(inner, "router_aux_loss_coef"):  # a model keeps the one it was made with, TRL's may be another
            inner.router_aux_loss_coef = self.router_aux_loss_coef
        hf.attach(self.model, loss, prompt=prompt, self_check=self_check)
        self.model_accepts_loss_kwargs = self._loss_shifts_labels = True  # read from the model before it was attached
        self.add_callback(StepCallback())

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The objective through the model's own forward; TRL's with gradients off."""
        if not torch.is_grad_enabled():
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        inputs["use_cache"] = False
        if self.aux_loss_enabled:
            inputs["output_router_logits"] = True
        outcome = _Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)
        parts = hf.last_parts(self.model)
        if parts is not None:
            self._metrics["train"]["nll"].append(parts.nll)
            self._metrics["train"]["seen_mass"].append(parts.seen_mass)
        return outcome

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Numbers leave the device only when they are logged."""
        for kept in self._metrics["train"].values():
            kept[:] = [float(value) if isinstance(value, Tensor) else value for value in kept]
        super().log(logs, start_time)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """TRL's card with a section on the objective."""
        super().create_model_card(*args, **kwargs)
        if self.is_world_process_zero():
            write_card(Path(self.args.output_dir), self.model.config.scalegrad)
