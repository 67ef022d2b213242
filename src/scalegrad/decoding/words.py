"""Repeated n-grams of words in decoded text, whatever ids spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_WORDS = re.compile(r"\w+|[^\w\s]")


def repeats_word_ngram(text: str, n: int) -> bool:
    """Whether some n consecutive words of `text` occur twice; a word is `\\w+`, a mark of punctuation is one too.

    >>> repeats_word_ngram("the cat sat, and the cat ran", 2), repeats_word_ngram("the cat sat, and the cat ran", 3)
    (True, False)
    """
    words = _WORDS.findall(text)
    ngrams = list(zip(*(words[shift:] for shift in range(n)), strict=False))
    return len(set(ngrams)) < len(ngrams)


@dataclass(frozen=True)
class WordBlock:
    """Drop hypotheses whose decoded text repeats an n-gram of words; for `BeamSearch(blocked=...)`.

    The last word counts as it stands, although later ids might lengthen it: a hypothesis never waits in a state from
    which every next word would be forbidden.
    """

    tokenizer: Any
    n: int

    def __call__(self, hypotheses: list[list[int]]) -> list[bool]:
        return [repeats_word_ngram(text, self.n) for text in self._decoded(hypotheses)]

    def _decoded(self, hypotheses: list[list[int]]) -> list[str]:
        """Every step decodes every hypothesis, so a fast tokenizer is asked itself: transformers looks at each id."""
        fast = getattr(self.tokenizer, "backend_tokenizer", None)
        if fast is not None:
            return list(fast.decode_batch(hypotheses, skip_special_tokens=True))
        return list(
            self.tokenizer.batch_decode(hypotheses, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )
