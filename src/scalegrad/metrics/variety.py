"""How varied is a set of texts as a whole?"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from scalegrad.metrics.texts import repetition
from scalegrad.metrics.word_tokens import checked_texts


def diversity(texts: Iterable[str]) -> float:
    """The product of 1 − Rep-n for n = 2, 3, 4, with Rep-n the mean over texts (Su et al. 2022).

    1 means that no text says any pair of words twice.

    >>> diversity(["a b a b a"])  # ab ba ab ba; aba bab aba; abab baba: 1/2 · 2/3 · 1
    0.33333333333333337
    """
    figures = repetition(texts)
    return diversity_of(figures["rep_2"], figures["rep_3"], figures["rep_4"])


def diversity_of(rep_2: float, rep_3: float, rep_4: float) -> float:
    """`diversity` of texts whose Rep-n are known."""
    return (1 - rep_2) * (1 - rep_3) * (1 - rep_4)


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
