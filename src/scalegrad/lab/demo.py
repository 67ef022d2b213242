"""The paper in minutes: one model fine-tuned by likelihood, unlikelihood and ScaleGrad, from the same start."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from scalegrad.lab.sweep import Sweep
from scalegrad.models import base
from scalegrad.options import Model, option
from scalegrad.tasks.open_ended.config import Training
from scalegrad.training import Settings

LEARNING_RATES = {base.NAME: 3e-4}
"""Of the models it is known for; others get that of the paper's kind of model, 3e-5."""


@dataclass(frozen=True)
class Demo:
    """A sweep of one γ and one α: on WikiText-2, scored on WikiText-103's test text, as the paper does.

    The defaults take minutes on two cores; steps and learning rate were chosen on the validation text.

    >>> [job.objective for job in Demo().sweep().jobs()]
    ['mle', 'ul=1.0', 'sg=0.2']
    """

    model: Model = base.NAME
    _: KW_ONLY
    gamma: float = 0.2
    """ScaleGrad's γ, and that of its twin at decoding time; in (0, 1]."""
    alpha: float = 1.0
    """Unlikelihood's α, 0 or more."""
    max_steps: int = 100
    """Training steps of each model."""
    batch: int = 8
    """Sequences of 300 tokens in a step."""
    learning_rate: Annotated[float | None, option(alias="--lr")] = None
    """AdamW's learning rate (default: 3e-4 for base, else 3e-5)."""
    prefixes: int = 120
    """Prefixes of WikiText-103's test text to continue."""
    chunks: int = 24
    """Chunks of 1,025 tokens of that text to predict."""
    seeds: int = 1
    """Train each model this many times, and show deviations."""

    def sweep(self) -> Sweep:
        """The sweep to run.

        Headings are left out of the training text: the base model has seen none, and a few steps teach it only to write
        "= = = =" without end.
        """
        settings = Settings(
            max_steps=self.max_steps,
            batch=self.batch,
            learning_rate=self.learning_rate or LEARNING_RATES.get(self.model, 3e-5),
            warmup_steps=0.1,
            evaluate_every=max(self.max_steps // 4, 1),
            log_every=max(self.max_steps // 20, 1),
            tracker=(),
        )
        config = Training(
            self.model,
            ("wikitext-2:prose",),
            validation="wikitext-103:valid",
            validation_sequences=48,
            settings=settings,
        )
        return Sweep(
            config,
            gamma=(self.gamma,),
            alpha=(self.alpha,),
            seeds=self.seeds,
            corpus="wikitext-103",
            chunks=self.chunks,
            prefixes=self.prefixes,
        )
