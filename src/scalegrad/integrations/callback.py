"""What `Trainer` tells a loss: which step it is."""

from __future__ import annotations

from typing import Any

from scalegrad._extras import need
from scalegrad.integrations import hf
from scalegrad.integrations.objective import TokenLoss

_transformers: Any = need("transformers", extra="hf")


class StepCallback(_transformers.TrainerCallback):  # type: ignore[misc]
    """Sets `loss.step` before each optimiser step, for a γ that follows a schedule.

    Args:
        loss: the loss given to `hf.loss`; None: the one attached to the trainer's model.
    """

    def __init__(self, loss: TokenLoss | None = None) -> None:
        self.loss = loss

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if args.n_gpu > 1 and hf.attached(others["model"]) is not None:
            raise ValueError("an attached objective needs one process for each GPU (torchrun), not DataParallel")

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        loss = self.loss or hf.attached(others["model"])
        if loss is not None:
            loss.step = state.global_step
