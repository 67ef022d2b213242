"""Paragraphs from a captioner, and how good and how repetitive they are."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from scalegrad import decoding, metrics
from scalegrad.tasks.captioning.dataset import MOST_TOKENS, Example, lengths, regions_batch
from scalegrad.tasks.captioning.vocabulary import join_words, paragraph_words, text_of

BETAS = tuple(number / 10 for number in range(11))
TRIGRAMS = 3
BATCH = 250

Told = Callable[[str, int, int], None]  # what, how much of it is done, how much there is


def describe(
    model: Any,
    tokenizer: Any,
    regions: Sequence[Tensor],
    strategy: decoding.Strategy | str = "greedy",
    *,
    keys: Sequence[str] | None = None,
    seed: int = 0,
    batch: int = BATCH,
) -> list[str]:
    """A paragraph for the regions [R, F] of each image. `keys` names the images: a draw depends on its own alone."""
    names = [str(place) for place in range(len(regions))] if keys is None else keys
    texts = []
    for start in range(0, len(regions), batch):
        part = slice(start, start + batch)
        inputs = {name: value.to(model.device) for name, value in regions_batch(regions[part]).items()}
        ids = decoding.generate(
            model, inputs, strategy, new_tokens=MOST_TOKENS, seed=seed, keys=names[part], tokenizer=tokenizer
        )
        texts += [text_of(tokenizer, row) for row in ids]
    return texts


def score(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """`cider` (CIDEr-D, times 100 as the paper prints it), `bleu`, and what `repetitiveness` gives.

    >>> figures = score(["a red bus stops here.", "two dogs run."], ["a red bus stops here.", "two cats run."])
    >>> round(figures["cider"], 1), figures["rep_1"], figures["words"]  # 100 · (10 + 10 · 2/3 · 1/4) / 2
    (583.3, 0.0, 5.0)
    """
    wanted = [normalised(text) for text in references]
    found = {"cider": 100 * metrics.cider_d(texts, wanted), **repetitiveness(texts)}
    if importlib.util.find_spec("sacrebleu"):  # a bare GPU machine may be without it
        found["bleu"] = metrics.bleu(texts, wanted)
    return found


def repetitiveness(texts: Sequence[str]) -> dict[str, float]:
    """`rep_1` to `rep_3`, the mean number of `words` (punctuation counted) and `n_texts`: for models and for people.

    Texts are lower-cased first, and punctuation is kept: "The dog. The cat." says "the" and "." twice.

    >>> figures = repetitiveness(["The dog. The cat."])
    >>> figures["rep_1"], figures["words"]  # the, dog, ., cat of six words
    (0.3333333333333333, 6.0)
    """
    found = metrics.repetition(normalised(text) for text in texts)
    kept = {name: found[name] for name in ("rep_1", "rep_2", "rep_3")}
    return {**kept, "words": sum(lengths(texts)) / len(texts), "n_texts": found["n_texts"]}


def normalised(text: str) -> str:
    """A paragraph as a captioner would write it: lower-cased, spaced as `join_words` spaces.

    >>> normalised("A  dog ,It's brown.")
    "a dog, it's brown."
    """
    return join_words(paragraph_words(text))


def choose_beta(
    model: Any,
    tokenizer: Any,
    validation: Sequence[Example],
    strategy: decoding.Greedy,
    betas: Sequence[float] = BETAS,
    told: Told | None = None,
) -> tuple[decoding.Greedy, dict[str, float]]:
    """`strategy` with the β of the highest CIDEr on `validation` (of equals the smallest), and the CIDEr of each β."""
    regions, references = [item.regions for item in validation], [item.paragraph for item in validation]
    found: dict[str, float] = {}
    for number, beta in enumerate(betas):
        texts = describe(model, tokenizer, regions, replace(strategy, gnmt=beta))
        found[f"{beta:g}"] = score(texts, references)["cider"]
        if told:
            told(f"length normalisation, {strategy}", number + 1, len(betas))
    best = max(betas, key=lambda beta: (found[f"{beta:g}"], -beta))
    return replace(strategy, gnmt=best), found
