"""How varied is a set of texts as a whole?"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.texts import repetition
from scalegrad.metrics.word_tokens import checked_texts, ngrams, words

Ints = NDArray[np.int64]


def distinct_n(texts: Iterable[str], n: int = 2) -> float:
    """Distinct n-grams over all n-grams, of all texts together (Li et al. 2016, who divide by words instead).

    It falls as the set grows: compare only sets of equal size. NaN where no text has an n-gram.

    >>> distinct_n(["a b a b", "a b c"], n=2)  # ab ba ab | ab bc: three distinct of five
    0.6
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    counts = Counter(ngram for text in checked_texts(texts) for ngram in ngrams(words(text), n))
    return len(counts) / counts.total() if counts else float("nan")


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
    counts = Counter(word for text in checked_texts(texts) for word in words(text))
    frequency = [count for _, count in counts.most_common(top)]
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
    length; 0 where no word matches. Texts with fewer than `longest` words take no part; NaN for fewer than two texts.

    >>> round(self_bleu(["a b c d e", "a b c d f"]), 6)  # (4/5 · 3/4 · 2/3 · 1/2)^¼, both ways
    0.66874
    """
    if longest < 1:
        raise ValueError(f"longest must be at least 1, not {longest}")
    tokens = [tokens for tokens in map(words, checked_texts(texts)) if len(tokens) >= longest]
    if len(tokens) < 2:
        return float("nan")
    lengths = np.array([len(text) for text in tokens])
    matches = np.array(list(_clipped_matches(tokens, longest)))  # [longest, texts]
    precision = np.where(matches > 0, matches, 0.1) / (lengths - np.arange(longest)[:, None])
    closest = _closest_other(lengths.tolist())
    brevity = [min(0.0, 1 - closest[length] / length) for length in lengths.tolist()]
    scores = np.exp(np.log(precision).mean(axis=0) + brevity)
    return float(np.where(matches[0] > 0, scores, 0.0).mean())


def _clipped_matches(texts: Sequence[Sequence[str]], longest: int) -> Iterator[Ints]:
    """For n = 1 … `longest`: how many n-grams of each text some other text matches, [texts].

    The best reference for an n-gram is the text that says it most often, or the second for that text itself.
    """
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(word, len(numbers)) for words in texts for word in words])
    text = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
    last = np.diff(text, append=-1) != 0  # the last word of its text
    place, ngram = np.arange(len(ids)), ids
    for n in range(1, longest + 1):
        pair, count = np.unique(ngram * len(texts) + text[place], return_counts=True)
        order = np.lexsort((-count, pair // len(texts)))
        pair, count = pair[order], count[order]
        new = np.diff(pair // len(texts), prepend=-1) != 0  # the text that says the n-gram most often
        best = np.flatnonzero(new)
        second = np.append(count, 0)[best + 1] * ~np.append(new, True)[best + 1]  # 0 where no other text says it
        matched = np.where(new, np.repeat(second, np.diff(np.append(best, len(new)))), count)
        yield np.bincount(pair % len(texts), matched, minlength=len(texts)).astype(np.int64)
        grows = ~last[place + n - 1]
        place = place[grows]
        ngram = np.unique(ngram[grows] * len(numbers) + ids[place + n], return_inverse=True)[1]


def _closest_other(lengths: Sequence[int]) -> dict[int, int]:
    """For each length the closest one among the others; of two equally close ones the shorter.

    >>> _closest_other([3, 5, 7, 7])
    {3: 5, 5: 3, 7: 7}
    """
    texts = Counter(lengths)
    return {
        length: min(
            (other for other in texts if other != length or texts[other] > 1),
            key=lambda other: (abs(other - length), other),
        )
        for length in texts
    }
