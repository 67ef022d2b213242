"""CIDEr and CIDEr-D: n-gram overlap with references, weighted by how telling an n-gram is (Vedantam et al. 2015)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.references import References, paired_references
from scalegrad.metrics.word_tokens import ngrams

Floats = NDArray[np.float64]
Tokenize = Callable[[str], list[str]]
Vector = dict[tuple[str, ...], float]

LONGEST_NGRAM = 4
SIGMA = 6.0  # of the length penalty of CIDEr-D, in words

_CAPTION_WORD = re.compile(r"n't\b|'(?:s|m|d|ll|re|ve)\b|\w+?(?=n't\b)|\w+(?:[-.]\w+)*")


def caption_words(text: str) -> list[str]:
    """Lower-case words without punctuation, clitics apart: close to the Penn Treebank tokens captions are scored on.

    >>> caption_words("It isn't a well-lit room; that's clear.")
    ['it', 'is', "n't", 'a', 'well-lit', 'room', 'that', "'s", 'clear']
    """
    return _CAPTION_WORD.findall(text.lower())


def cider(predictions: Sequence[str], references: References, tokenize: Tokenize = caption_words) -> float:
    """The mean CIDEr of predictions, from 0 to 1: `cider_per_text`, averaged.

    >>> round(cider(["a red bus", "two dogs"], ["a red bus", "two cats run"]), 6)  # (3/4 + 1/(4√6)) / 2
    0.426031
    """
    return float(cider_per_text(predictions, references, tokenize).mean())


def cider_per_text(predictions: Sequence[str], references: References, tokenize: Tokenize = caption_words) -> Floats:
    """CIDEr of each prediction, [texts]: the mean over n = 1 … 4 and references of the cosine of their TF-IDF vectors.

    `references` holds one text or several for each prediction. An n-gram's weight is its count times log(items / items
    whose references contain it): it comes from the set that is scored, so figures of different sets do not compare,
    and n-grams that all items share weigh nothing. Words are not stemmed.

    >>> cider_per_text(["a red bus", "two dogs"], ["a red bus", "two cats run"])  # no 4-gram; one word of 2 and 3
    array([0.75      , 0.10206207])
    """
    return _similarities(predictions, references, tokenize, clip=False)


def cider_d(predictions: Sequence[str], references: References, tokenize: Tokenize = caption_words) -> float:
    """The mean CIDEr-D of predictions, from 0 to 10: `cider_d_per_text`, averaged. The paper reports it times 100.

    >>> cider_d(["a red bus stops here", "two dogs"], ["a red bus stops here", "cats run"])  # 10 and 0
    5.0
    """
    return float(cider_d_per_text(predictions, references, tokenize).mean())


def cider_d_per_text(predictions: Sequence[str], references: References, tokenize: Tokenize = caption_words) -> Floats:
    """CIDEr-D of each prediction, [texts]: CIDEr with counts clipped to the reference's and lengths compared, times 10.

    Saying a telling word again and again gains nothing, and a text longer or shorter than its reference by d words is
    multiplied by exp(−d² / (2 · 6²)). This is what the captioning literature, and the paper, call CIDEr.

    >>> cider_d_per_text(["a red bus stops here", "two dogs"], ["a red bus stops here", "cats run"]).tolist()
    [10.0, 0.0]
    """
    return 10 * _similarities(predictions, references, tokenize, clip=True)


def _similarities(predictions: Sequence[str], references: References, tokenize: Tokenize, clip: bool) -> Floats:
    """The mean similarity of each prediction to its references, [texts]."""
    groups = [[tokenize(text) for text in group] for group in paired_references(predictions, references)]
    texts = [tokenize(text) for text in predictions]
    similarity = np.zeros(len(texts))
    for n in range(1, LONGEST_NGRAM + 1):
        # How many items have the n-gram in their references.
        frequency = Counter(ngram for group in groups for ngram in {g for words in group for g in ngrams(words, n)})
        idf = {ngram: math.log(len(groups)) - math.log(count) for ngram, count in frequency.items()}
        for item, (text, group) in enumerate(zip(texts, groups, strict=True)):
            ours = _vector(text, n, idf, math.log(len(groups)))
            for words in group:
                cosine = _cosine(ours, _vector(words, n, idf, 0.0), clip)
                if clip:
                    # Lengths count as in pycocoevalcap, by bigrams: an empty text is as long as one word.
                    longer = max(len(text), 1) - max(len(words), 1)
                    cosine *= math.exp(-(longer**2) / (2 * SIGMA**2))
                similarity[item] += cosine / len(group) / LONGEST_NGRAM
    return similarity


def _vector(words: Sequence[str], n: int, idf: Vector, unknown: float) -> Vector:
    """The TF-IDF weight of each n-gram; `unknown` is the weight of one that no reference has."""
    return {ngram: count * idf.get(ngram, unknown) for ngram, count in Counter(ngrams(words, n)).items()}


def _cosine(prediction: Vector, reference: Vector, clip: bool) -> float:
    """The cosine of two vectors; with `clip` the prediction's weights count up to the reference's."""
    norms = _norm(prediction.values()) * _norm(reference.values())
    total = 0.0
    for ngram, weight in reference.items():
        if ngram in prediction:
            total += weight * (min(prediction[ngram], weight) if clip else prediction[ngram])
    return total / norms if norms else 0.0


def _norm(weights: Iterable[float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights))
