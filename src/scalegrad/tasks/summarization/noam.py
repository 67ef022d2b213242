"""The original's two Adams, one for BERT and one for what is new, each with its own warm-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Noam:
    """lr · min(s^−½, s · warmup^−1.5) at step s = 1, 2, …: up in a line, then down as 1/√s.

    >>> noam = Noam(0.2, warmup=100)
    >>> noam.at(1), round(noam.at(100), 6), round(noam.at(400), 6)  # 0.2/1000, 0.2/10 at the top, 0.2/20
    (0.0002, 0.02, 0.01)
    """

    lr: float
    warmup: int

    def __post_init__(self) -> None:
        if not self.lr > 0 or self.warmup < 1:
            raise ValueError(f"Noam needs lr above 0 and warmup from 1, not {self.lr!r} and {self.warmup!r}")

    def at(self, step: int) -> float:
        """The learning rate of `step`, counted from 1."""
        return float(self.lr * min(step**-0.5, step * self.warmup**-1.5))


PAPER_ENCODER = Noam(0.002, warmup=20_000)
PAPER_DECODER = Noam(0.2, warmup=10_000)


def two_adams(encoder: Noam = PAPER_ENCODER, decoder: Noam = PAPER_DECODER) -> Callable[[Any], tuple[Any, Any]]:
    """A function that gives a model with a `bert` its optimizer and schedule, as the Trainer takes them.

    Adam looks at each parameter alone, so one Adam (β .9/.999, ε 1e-9) with two groups is the original's two: the
    parameters of `model.bert` follow `encoder`, all others `decoder`.
    """

    def make(model: Any) -> tuple[Any, Any]:
        import torch

        groups = split_parameters(model)
        optimizer = torch.optim.Adam(
            [{"params": groups[0], "lr": 1.0}, {"params": groups[1], "lr": 1.0}], betas=(0.9, 0.999), eps=1e-9
        )
        # The scheduler counts from 0, and before any step; the first step is step 1.
        rates = [lambda done: encoder.at(done + 1), lambda done: decoder.at(done + 1)]
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rates)

    return make


def split_parameters(model: Any) -> tuple[list[Any], list[Any]]:
    """The trainable parameters of BERT, and all others; a tied one counts once."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    ours = [weight for name, weight in named if name.startswith("bert.")]
    others = [weight for name, weight in named if not name.startswith("bert.")]
    if not ours or not others:
        raise ValueError(f"two optimizers need a model with a `bert` and more, and {type(model).__name__} is not one")
    return ours, others
