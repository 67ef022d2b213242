"""Texts as word tokens and n-grams: what the repetition figures count."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

Token = TypeVar("Token", bound=Hashable)

WORD = re.compile(r"\w+|[^\w\s]|\n")

# A batch holds about this many characters, so that a stream of any length fits in memory.
BATCH_CHARACTERS = 1 << 19


def words(text: str) -> list[str]:
    r"""The word tokens of the paper: runs of word characters, single other signs, and line breaks.

    >>> words("The horses don't run.\n")
    ['The', 'horses', 'don', "'", 't', 'run', '.', '\n']
    """
    return WORD.findall(text)


def checked_texts(texts: Iterable[str], name: str = "texts") -> Iterator[str]:
    """The texts, one by one; the first thing that is not a text raises."""
    if isinstance(texts, str):
        raise ValueError(f"{name} must be a collection of texts, not one text: put it in a list")
    return _only_strings(texts, name)


def _only_strings(texts: Iterable[str], name: str) -> Iterator[str]:
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name}[{index}] must be a text (str), not {type(text).__name__}")
        yield text


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut a stream of texts into lists of about `BATCH_CHARACTERS` characters."""
    batch: list[str] = []
    room = BATCH_CHARACTERS
    for text in texts:
        batch.append(text)
        room -= len(text) + 1
        if room <= 0:
            yield batch
            batch, room = [], BATCH_CHARACTERS
    if batch:
        yield batch


def ngrams(tokens: Sequence[Token], n: int) -> Iterator[tuple[Token, ...]]:
    """Every n tokens in a row.

    >>> list(ngrams("abc", 2))
    [('a', 'b'), ('b', 'c')]
    """
    return zip(*[tokens[start:] for start in range(n)], strict=False)


def repeats(tokens: Sequence[Hashable], longest: int) -> list[int]:
    """How many n-grams were used before in these tokens, for n = 1 … `longest`.

    >>> repeats("a b a b".split(), 3)
    [2, 1, 0]
    """
    counts = [len(tokens) - len(set(tokens))]
    for n in range(2, longest + 1):
        # An n-gram comes back only where an (n − 1)-gram does.
        counts.append(len(tokens) - n + 1 - len(set(ngrams(tokens, n))) if counts[-1] else 0)
    return counts
