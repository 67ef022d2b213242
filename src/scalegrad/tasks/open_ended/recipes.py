"""Experiments by name: each a function that returns a frozen config, not sixty flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scalegrad import objectives
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.training import Settings


@dataclass(frozen=True)
class Recipe:
    """A training by name, and how often it is done, each time with another seed."""

    config: TrainConfig
    seeds: int = 1


def paper(objective: str = "sg=0.2") -> Recipe:
    """The open-ended experiment of the paper (section 4.1, appendix on hyper-parameters).

    GPT-2 medium on WikiText-103, one 300-token sequence a step, AdamW from 2e-5, at most 35,000 steps, validation every
    1,000, selection by plain validation perplexity, three seeds. What the paper leaves open: the rate falls linearly to
    0 over those steps, without warm-up; weight decay 0.01, not on biases and layer norms; gradients clipped at 1;
    dropout as in the pretrained configuration; float32.

    >>> paper().config.settings.learning_rate, paper("ul=0.5").config.objective.label
    (2e-05, 'UL α=0.5')
    """
    settings = Settings(
        max_steps=35_000,
        batch=1,
        evaluation_batch=8,
        learning_rate=2e-5,
        schedule="linear",
        weight_decay=0.01,
        max_grad_norm=1.0,
        evaluate_every=1_000,
        save_every=1_000,
        log_every=100,
        dtype="float32",
    )
    config = TrainConfig(
        model="openai-community/gpt2-medium",
        data=("Salesforce/wikitext:wikitext-103-v1:train",),
        validation="wikitext-103:valid",
        objective=objectives.parse(objective),
        protocol="paper",
        length=300,
        settings=settings,
    )
    return Recipe(config, seeds=3)


RECIPES: dict[str, Callable[[], Recipe]] = {"paper": paper}


def find(name: str) -> Recipe:
    """The recipe called `name`."""
    if name not in RECIPES:
        raise ValueError(f"recipe must be {' or '.join(RECIPES)}, not {name!r}")
    return RECIPES[name]()
