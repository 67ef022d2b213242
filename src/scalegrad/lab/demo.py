"""The paper in minutes: one model fine-tuned by likelihood, unlikelihood and ScaleGrad, from the same start."""

from __future__ import annotations

from scalegrad.lab.sweep import Sweep
from scalegrad.models import base
from scalegrad.tasks.open_ended.training import TrainConfig
from scalegrad.training import Settings

LEARNING_RATES = {base.NAME: 3e-4}
"""Of the models it is known for; others get that of the paper's kind of model, 3e-5."""


def demo(
    model: str = base.NAME,
    *,
    gamma: float = 0.2,
    alpha: float = 1.0,
    steps: int = 100,
    batch: int = 8,
    learning_rate: float | None = None,
    prefixes: int = 120,
    chunks: int = 24,
    seeds: int = 1,
) -> Sweep:
    """A sweep of one γ and one α: on WikiText-2, scored on WikiText-103's test text, as the paper does.

    Headings are left out of the training text: the base model has seen none, and a few steps teach it only to write
    "= = = =" without end.
    The defaults take minutes on two cores; steps and learning rate were chosen on the validation text.

    >>> [job.objective for job in demo().jobs()]
    ['mle', 'ul=1.0', 'sg=0.2']
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    settings = Settings(
        max_steps=steps,
        batch=batch,
        learning_rate=learning_rate or LEARNING_RATES.get(model, 3e-5),
        warmup_steps=0.1,
        evaluate_every=max(steps // 4, 1),
        log_every=max(steps // 20, 1),
        tracker=(),
    )
    config = TrainConfig(
        model, ("wikitext-2:prose",), validation="wikitext-103:valid", validation_sequences=48, settings=settings
    )
    return Sweep(config, (gamma,), (alpha,), seeds=seeds, corpus="wikitext-103", chunks=chunks, prefixes=prefixes)
