"""What `Trainer` tells a loss, and what a loss tells `Trainer`: which step it is, and the plain NLL beside the loss."""

from __future__ import annotations

from typing import Any

import torch

from scalegrad.extras import need
from scalegrad.integrations import hf
from scalegrad.objectives import TokenLoss

_transformers: Any = need("transformers", extra="hf")


class StepCallback(_transformers.TrainerCallback):  # type: ignore[misc]
    """Sets `loss.step` before each optimiser step, for a γ that follows a schedule, and logs what the loss hides.

    The log, the progress bar and every callback after this one get `nll`, the mean plain −log p of the targets since
    the last log (its exponential is the perplexity; the loss itself shifts with γ), and `seen_mass`, the mean
    probability of what is discouraged; of this process's batches. Given to `Trainer(callbacks=[...])` it comes after
    the trackers of `report_to`; `StepCallback.add_to(trainer)` puts it before them.

    Args:
        loss: what `hf.loss` gave, or the loss given to it; None: the one attached to the trainer's model.
    """

    def __init__(self, loss: TokenLoss | hf.ComputeLoss | None = None) -> None:
        self.loss = loss.loss if isinstance(loss, hf.ComputeLoss) else loss
        self.computed = loss if isinstance(loss, hf.ComputeLoss) else None
        self.sums: torch.Tensor | None = None  # NLL, seen mass and number of targets since the last log

    @classmethod
    def add_to(cls, trainer: Any, loss: TokenLoss | hf.ComputeLoss | None = None) -> StepCallback:
        """A new one as the first callback of `trainer`: TensorBoard, W&B and the like then draw `nll`, too."""
        first = cls(loss)
        trainer.callback_handler.callbacks.insert(0, first)
        return first

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if args.n_gpu > 1 and hf.attached(others["model"]) is not None:
            raise ValueError("an attached objective needs one process for each GPU (torchrun), not DataParallel")

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        loss = self.loss or hf.attached(others["model"])
        if loss is not None:
            loss.step = state.global_step

    def on_substep_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        parts = self.computed.parts if self.computed is not None else hf.last_parts(others["model"])
        if parts is not None:
            self.sums = parts.sums() if self.sums is None else self.sums + parts.sums()

    on_step_end = on_substep_end  # the last batch of a step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **others: Any) -> None:
        if self.sums is None or logs is None or "loss" not in logs:
            return
        sums, self.sums = self.sums, None
        if "nll" in logs:  # of a trainer that logs it itself
            return
        nll, mass, tokens = sums.tolist()
        if tokens:
            told = {"nll": nll / tokens, "seen_mass": mass / tokens}
            logs.update(told)
            state.log_history[-1].update(told)
