"""Which sentences an extractive summary should take: the greedy choice that raises ROUGE-1 + ROUGE-2 most."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_WORD = re.compile(r"[a-z0-9]+")
MOST = 3

NGrams = tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]  # its words, its pairs of words


def oracle(sentences: Sequence[str], summary: str, most: int = MOST) -> list[int]:
    """The places of at most `most` sentences, in order, chosen one by one.

    Each step adds the sentence that gives the chosen ones the highest sum of ROUGE-1 and ROUGE-2 F1 with the summary,
    as long as one raises it; of equal ones the first. N-grams lie within a sentence and count once, as in the original,
    and words are lower-cased runs of letters and digits.

    >>> oracle(["A dog barks.", "The cat sat on the mat.", "It rained."], "The cat sat. It rained.")
    [1, 2]
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, not {most}")
    wanted = _ngrams(summary.splitlines())
    found = [_ngrams([sentence]) for sentence in sentences]
    chosen: list[int] = []
    covered: NGrams = (frozenset(), frozenset())
    best = 0.0
    while len(chosen) < most:
        scores = [
            (_score(_joined(covered, ngrams), wanted), -place)
            for place, ngrams in enumerate(found)
            if place not in chosen
        ]
        score, place = max(scores, default=(0.0, 0))
        if score <= best:
            break
        best, covered = score, _joined(covered, found[-place])
        chosen.append(-place)
    return sorted(chosen)


def _ngrams(texts: Sequence[str]) -> NGrams:
    words = [_WORD.findall(text.lower()) for text in texts]
    single = frozenset((word,) for text in words for word in text)
    double = frozenset(pair for text in words for pair in pairwise(text))
    return single, double


def _joined(first: NGrams, second: NGrams) -> NGrams:
    return first[0] | second[0], first[1] | second[1]


def _score(chosen: NGrams, wanted: NGrams) -> float:
    """ROUGE-1 F1 + ROUGE-2 F1 of sets: 2·shared / (size + size) each."""
    return sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(chosen, wanted, strict=True) if a and b)
