"""How varied is a set of texts as a whole?"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.texts import repetition
from scalegrad.metrics.word_tokens import CodedTexts, Ints, WordCoder, batches, checked_texts, repeated_ngrams

Floats = NDArray[np.float64]


def distinct_n(texts: Iterable[str], n: int = 2) -> float:
    """Distinct n-grams over all n-grams, of all texts together (Li et al. 2016, who divide by words instead).

    It falls as the set grows: compare only sets of equal size. NaN where no text has an n-gram.

    >>> distinct_n(["a b a b", "a b c"], n=2)  # ab ba ab | ab bc: three distinct of five
    0.6
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    coded = _encode_all(texts)
    ngrams = int(np.maximum(coded.lengths - n + 1, 0).sum())
    if ngrams == 0:
        return float("nan")
    *_, (_, code) = repeated_ngrams(coded.ids, coded.text, n)
    repeats = len(code) - (int(code[-1]) + 1 if len(code) else 0)
    return 1 - repeats / ngrams


def diversity(texts: Iterable[str]) -> float:
    """The product of 1 − Rep-n for n = 2, 3, 4, with Rep-n the mean over texts (Su et al. 2022).

    1 means that no text says any pair of words twice.

    >>> diversity(["a b a b a"])  # ab ba ab ba; aba bab aba; abab baba: 1/2 · 2/3 · 1
    0.33333333333333337
    """
    figures = repetition(texts)
    return (1 - figures["rep_2"]) * (1 - figures["rep_3"]) * (1 - figures["rep_4"])


def zipf_coefficient(texts: Iterable[str], top: int = 5000) -> float:
    """Minus the slope of log frequency on log rank, by least squares over the `top` most frequent words.

    Human text lies near 1 (Holtzman et al. 2020 give .93 on GPT-2 tokens); a set that keeps saying the same few words
    lies above. NaN for fewer than two distinct words.

    >>> round(zipf_coefficient(["a a a a b b"]), 12)  # frequency 4, 2 at rank 1, 2: it halves as the rank doubles
    1.0
    """
    if top < 2:
        raise ValueError(f"top must be at least 2, not {top}")
    coded = _encode_all(texts)
    frequency = np.sort(np.bincount(coded.ids, minlength=0))[::-1][:top]
    if len(frequency) < 2:
        return float("nan")
    x = np.log(np.arange(1, len(frequency) + 1))
    x -= x.mean()
    return -float(x @ np.log(frequency) / (x @ x))


def compression_ratio(texts: Iterable[str]) -> float:
    """Bytes of the texts (UTF-8, one a line) over their bytes compressed with zlib at its best (Shaib et al. 2024).

    The higher, the more repetitive: English prose gives 2 to 3. zlib looks back 32 KiB, so what it finds is repetition
    within a text and between neighbours; longer texts and larger sets compress better. NaN for no text at all.

    >>> compression_ratio(["The horses are brown. " * 100]) > 30
    True
    """
    compressor = zlib.compressobj(9)
    before = after = 0
    for text in checked_texts(texts):
        line = text.encode("utf-8", "surrogatepass") + b"\n"
        before += len(line)
        after += len(compressor.compress(line))
    return before / (after + len(compressor.flush())) if before else float("nan")


def self_bleu(texts: Iterable[str], longest: int = 4) -> float:
    """The mean BLEU of each text against all the others as its references (Zhu et al. 2018), from 0 to 1.

    High means that the texts resemble each other. BLEU is the sentence's: geometric mean of clipped n-gram precisions
    for n = 1 … `longest`, a precision without any match counting as .1 match, times the brevity penalty for the closest
    length. Texts with fewer than `longest` words take no part; NaN for fewer than two texts.

    >>> round(self_bleu(["a b c d e", "a b c d f"]), 6)  # (4/5 · 3/4 · 2/3 · 1/2)^¼, both ways
    0.66874
    """
    if longest < 1:
        raise ValueError(f"longest must be at least 1, not {longest}")
    coded = _encode_all(texts)
    total = coded.lengths - np.arange(longest)[:, None]  # [n, texts]
    takes_part = total[-1] > 0
    if takes_part.sum() < 2:
        return float("nan")
    chosen = takes_part[coded.text]
    ids, text, total = coded.ids[chosen], coded.text[chosen], total[:, takes_part]
    matches = np.stack(
        [
            np.bincount(*_clipped_matches(text[position], code), minlength=len(coded.lengths))[takes_part]
            for position, code in repeated_ngrams(ids, text, longest)
        ]
    )
    precision = np.where(matches > 0, matches, 0.1) / total
    lengths = coded.lengths[takes_part]
    brevity = np.minimum(0.0, 1 - _closest_other(lengths) / lengths)
    return float(np.exp(np.log(precision).mean(axis=0) + brevity).mean())


def _clipped_matches(text: Ints, code: Ints) -> tuple[Ints, Floats]:
    """For each text and each of its n-grams: the text, and how many of them some other text matches.

    The best reference for an n-gram is the text that says it most often, or the second for that text itself.
    """
    if not len(code):
        return code, np.empty(0)
    texts = int(text.max()) + 1
    pair, count = np.unique(code * texts + text, return_counts=True)
    code, text = pair // texts, pair % texts
    order = np.lexsort((-count, code))
    code, text, count = code[order], text[order], count[order]
    is_best = np.concatenate([[True], code[1:] != code[:-1]])
    best = np.flatnonzero(is_best)
    runner_up = np.minimum(best + 1, len(code) - 1)
    second = np.where(code[runner_up] == code[best], count[runner_up], 0)
    second[best == runner_up] = 0
    reference = np.where(is_best, second[code], count[best][code])
    return text, np.minimum(count, reference).astype(np.float64)


def _closest_other(lengths: Ints) -> Ints:
    """For each length the closest one among the others; of two equally close ones the shorter."""
    order = np.argsort(lengths, kind="stable")
    ranked = lengths[order]
    far = np.iinfo(np.int64).max // 2
    below = np.concatenate([[-far], ranked[:-1]])
    above = np.concatenate([ranked[1:], [far]])
    closest = np.empty_like(lengths)
    closest[order] = np.where(ranked - below <= above - ranked, below, above)
    return closest


def _encode_all(texts: Iterable[str]) -> CodedTexts:
    """All the texts as word ids at once."""
    coder = WordCoder()
    parts = [coder.encode(batch) for batch in batches(checked_texts(texts))] or [coder.encode([])]
    lengths = np.concatenate([part.lengths for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    return CodedTexts(ids, np.repeat(np.arange(len(lengths)), lengths), lengths, parts[-1].vocabulary)
