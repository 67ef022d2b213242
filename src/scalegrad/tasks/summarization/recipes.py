"""How a summariser is trained and decoded: frozen settings with a name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from scalegrad.tasks.summarization.batching import TARGET_TOKENS, TOKENS
from scalegrad.tasks.summarization.noam import PAPER_DECODER, PAPER_ENCODER, Noam
from scalegrad.training import Settings


@dataclass(frozen=True)
class Recipe:
    """One way to train and decode.

    `selector`: stage 1 of a BertSum; None leaves it out. `writer`: stage 2, or the fine-tuning of another model.
    `encoder`, `decoder`: the two Noam schedules of a BertSum; `selector_rate` that of stage 1. `tokens`: token batches
    of that size for the writer; None takes `writer.batch` examples. `decoder_shape`: of a fresh BertSum decoder,
    see `BertSumConfig`. The last lines bound articles and summaries, in tokens.
    """

    writer: Settings
    selector: Settings | None = None
    encoder: Noam = PAPER_ENCODER
    decoder: Noam = PAPER_DECODER
    selector_rate: Noam = field(default_factory=lambda: Noam(0.002, warmup=10_000))
    tokens: int | None = None
    label_smoothing: float = 0.0
    decoder_shape: dict[str, Any] = field(default_factory=dict)
    source_tokens: int | None = None
    target_tokens: int = TARGET_TOKENS
    min_new_tokens: int = 0
    new_tokens: int = TARGET_TOKENS

    def record(self) -> dict[str, Any]:
        """All that decides the weights, for a run's config."""
        whole = asdict(self)
        whole["writer"] = self.writer.record()
        whole["selector"] = None if self.selector is None else self.selector.record()
        return whole


def paper(seed: int = 0) -> Recipe:
    """BertSum as in the paper: 50,000 steps of selection, 200,000 of writing, batches of 140 tokens, five a step.

    Encoder .002 with 20,000 steps of warm-up, decoder .2 with 10,000, label smoothing .1, summaries cut at 140 tokens;
    decoding ends between 50 and 200 tokens, as the original does on CNN/DM.

    >>> recipe = paper()
    >>> recipe.encoder, recipe.decoder, recipe.tokens, recipe.writer.accumulation
    (Noam(lr=0.002, warmup=20000), Noam(lr=0.2, warmup=10000), 140, 5)
    """
    return Recipe(
        selector=Settings(max_steps=50_000, batch=12, accumulation=2, evaluate_every=1000, seed=seed, **_PLAIN),
        writer=Settings(max_steps=200_000, accumulation=5, evaluate_every=2000, seed=seed, **_PLAIN),
        tokens=TOKENS,
        label_smoothing=0.1,
        min_new_tokens=50,
        new_tokens=200,
    )


def abstracts(seed: int = 0) -> Recipe:
    """BertSum on the 1,992 abstracts of SciTLDR, for one GPU and about a minute.

    The paper's rates warm up for longer than this run takes; these reach about the same heights (encoder 5e-5, decoder
    1e-3) within a few hundred steps.
    """
    return Recipe(
        selector=Settings(epochs=3, batch=32, evaluation_batch=128, evaluate_every=60, seed=seed, **_PLAIN),
        writer=Settings(epochs=20, evaluation_batch=128, evaluate_every=40, patience=4, seed=seed, **_PLAIN),
        selector_rate=Noam(0.0005, warmup=100),
        encoder=Noam(0.0009, warmup=300),
        decoder=Noam(0.015, warmup=200),
        tokens=3000,
        label_smoothing=0.1,
        target_tokens=80,
        min_new_tokens=5,
        new_tokens=60,
    )


def small(seed: int = 0) -> Recipe:
    """BertSum at a scale for a CPU: two decoder layers, 20 and 40 steps. To see that all runs, not how well."""
    return Recipe(
        selector=Settings(max_steps=20, batch=4, evaluate_every=10, seed=seed, **_PLAIN),
        writer=Settings(max_steps=40, evaluate_every=20, seed=seed, **_PLAIN),
        selector_rate=Noam(0.0005, warmup=10),
        encoder=Noam(0.0003, warmup=20),
        decoder=Noam(0.01, warmup=20),
        tokens=TOKENS,
        label_smoothing=0.1,
        decoder_shape={"decoder_layers": 2, "decoder_inner": 512},
        source_tokens=192,
        target_tokens=60,
        min_new_tokens=5,
        new_tokens=40,
    )


def finetune(seed: int = 0) -> Recipe:
    """Any pretrained encoder-decoder or causal LM: three epochs of AdamW at 3e-5, 16 examples a step."""
    return Recipe(writer=Settings(epochs=3, batch=4, accumulation=4, learning_rate=3e-5, warmup_steps=0.1, seed=seed))


# No weight decay (it is Adam) and no clipping, as in the original.
_PLAIN: dict[str, Any] = {"weight_decay": 0.0, "max_grad_norm": 0.0}

RECIPES = {"paper": paper, "abstracts": abstracts, "small": small, "finetune": finetune}
