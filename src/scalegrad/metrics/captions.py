"""CIDEr and CIDEr-D: n-gram overlap with references, weighted by how telling an n-gram is (Vedantam et al. 2015)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.references import References, paired_references
from scalegrad.metrics.word_tokens import Ints, numbering

Floats = NDArray[np.float64]
Tokenize = Callable[[str], list[str]]

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
    return _Vectors.of(predictions, references, tokenize).score(clip=False)


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
    return 10 * _Vectors.of(predictions, references, tokenize).score(clip=True)


@dataclass(frozen=True)
class _Vectors:
    """All texts as word ids: first the predictions, then the references, with the item that each belongs to."""

    ids: Ints  # [N]
    text: Ints  # [N]
    lengths: Ints  # [texts]
    item: Ints  # [texts]
    items: int

    @staticmethod
    def of(predictions: Sequence[str], references: References, tokenize: Tokenize) -> _Vectors:
        groups = paired_references(predictions, references)
        tokens = [tokenize(text) for text in chain(predictions, chain.from_iterable(groups))]
        lengths = np.array([len(words) for words in tokens])
        ids = np.array(list(map(numbering().__getitem__, chain.from_iterable(tokens))), np.int64)
        item = np.concatenate([np.arange(len(groups)), np.repeat(np.arange(len(groups)), [len(g) for g in groups])])
        return _Vectors(ids, np.repeat(np.arange(len(lengths)), lengths), lengths, item, len(groups))

    def score(self, clip: bool) -> Floats:
        """The similarity of each prediction to its references, [items]."""
        reference = np.arange(self.items, len(self.lengths))
        own = self.item[reference]
        similarity = np.zeros(len(reference))
        for text, code, weight in self._weights():
            similarity += self._similarity(text, code, weight, clip)[reference] / LONGEST_NGRAM
        if clip:
            # Lengths count as in pycocoevalcap, by bigrams: an empty text is as long as one word.
            size = np.maximum(self.lengths - 1, 0)
            similarity *= np.exp(-((size[reference] - size[own]) ** 2) / (2 * SIGMA**2))
        return np.bincount(own, similarity, self.items) / np.bincount(own, minlength=self.items)

    def _weights(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """For each n the entries of the TF-IDF vectors: text, n-gram and weight, ordered by text and n-gram."""
        position = np.arange(len(self.ids))
        code = np.unique(self.ids, return_inverse=True)[1]
        for n in range(1, LONGEST_NGRAM + 1):
            kinds = int(code.max(initial=-1)) + 1
            entry, count = np.unique(self.text[position] * kinds + code, return_counts=True)
            text, ngram = entry // max(kinds, 1), entry % max(kinds, 1)
            in_references = text >= self.items
            seen = np.unique(self.item[text[in_references]] * kinds + ngram[in_references])
            frequency = np.bincount(seen % max(kinds, 1), minlength=kinds)
            yield text, ngram, count * (np.log(self.items) - np.log(np.maximum(frequency, 1)))[ngram]
            follows = position + n < len(self.ids)
            follows[follows] = self.text[position[follows]] == self.text[position[follows] + n]
            position = position[follows]
            code = np.unique(code[follows] * len(self.ids) + self.ids[position + n], return_inverse=True)[1]

    def _similarity(self, text: Ints, ngram: Ints, weight: Floats, clip: bool) -> Floats:
        """The cosine of each text with the prediction of its item, [texts]."""
        texts, kinds = len(self.lengths), int(ngram.max(initial=-1)) + 1
        norm = np.sqrt(np.bincount(text, weight**2, texts))
        scale = norm * norm[self.item]
        of_predictions = text < self.items
        known = text[of_predictions] * kinds + ngram[of_predictions]  # ascending
        if not len(known):
            return np.zeros(texts)
        wanted = self.item[text] * kinds + ngram
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        theirs = np.where(known[found] == wanted, weight[found], 0.0)
        product = (np.minimum(theirs, weight) if clip else theirs) * weight
        cosine: Floats = np.bincount(text, product, texts) / np.where(scale > 0, scale, 1.0)
        return cosine
