"""Texts as word tokens, and word tokens as integers: what the repetition figures count."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WORD = re.compile(r"\w+|[^\w\s]|\n")

# A batch holds about this many space-separated pieces, which keeps its arrays in the cache: about 1 MiB each.
BATCH_PIECES = 1 << 17
# A coder forgets its pieces once it knows this many, so that a stream of any length fits in memory.
KNOWN_PIECES = 1 << 18


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


@dataclass(frozen=True)
class CodedTexts:
    """Some texts as word ids, laid end to end.

    `ids` [N] are word ids below `vocabulary`, `text` [N] says which text a word belongs to, `lengths` [texts] how many
    words each text has.
    """

    ids: Ints
    text: Ints
    lengths: Ints
    vocabulary: int


class WordCoder:
    """Numbers the words of texts; the same word keeps its number.

    A word never spans a space, so texts are cut at spaces first and each distinct piece is taken apart once: far
    cheaper than running the pattern over every text.
    """

    def __init__(self) -> None:
        self.pieces: dict[str, int] = numbering()  # the distinct items of text.split(' ') so far
        self._words: dict[str, int] = numbering()
        self._first: Ints = np.empty(0, np.int64)  # [pieces] where a piece's words start in _ids
        self._count: Ints = np.empty(0, np.int64)  # [pieces] how many words it has
        self._ids: Ints = np.empty(0, np.int64)

    def encode(self, texts: Iterable[str]) -> CodedTexts:
        """Number the words of `texts`.

        >>> coded = WordCoder().encode(["a b. a", "", "b"])
        >>> coded.ids.tolist(), coded.text.tolist(), coded.lengths.tolist()
        ([0, 1, 2, 0, 1], [0, 0, 0, 0, 2], [4, 0, 1])
        """
        known = len(self.pieces)
        number = self.pieces.__getitem__
        flat: list[int] = []
        ends = [0]
        for text in texts:
            flat.extend(map(number, text.split(" ")))
            ends.append(len(flat))
        if len(self.pieces) > known:
            self._take_apart(known)
        pieces = np.array(flat, np.int64)
        count = self._count[pieces]
        after = np.cumsum(count)
        at = np.repeat(self._first[pieces] - after + count, count)
        at += np.arange(len(at))
        lengths = np.diff(np.concatenate([[0], after])[np.array(ends)])
        return CodedTexts(self._ids[at], np.repeat(np.arange(len(lengths)), lengths), lengths, len(self._words))

    def _take_apart(self, known: int) -> None:
        """Find the words of the pieces after the first `known` ones."""
        new = [[piece] if piece.isalnum() else words(piece) for piece in islice(self.pieces, known, None)]
        count = np.fromiter(map(len, new), np.int64, len(new))
        ids = list(map(self._words.__getitem__, chain.from_iterable(new)))
        self._first = np.concatenate([self._first, len(self._ids) + np.cumsum(count) - count])
        self._count = np.concatenate([self._count, count])
        self._ids = np.concatenate([self._ids, np.array(ids, np.int64)])


def numbering() -> dict[str, int]:
    """A dictionary that gives each new key the next number: what `d[key]` costs is one lookup, with no test."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut a stream of texts into lists of about `BATCH_PIECES` space-separated pieces."""
    batch: list[str] = []
    room = BATCH_PIECES
    for text in texts:
        batch.append(text)
        room -= text.count(" ") + 1
        if room <= 0:
            yield batch
            batch, room = [], BATCH_PIECES
    if batch:
        yield batch


def repeated_ngrams(key: Ints, text: Ints, longest: int) -> Iterator[tuple[Ints, Ints]]:
    """Find, for n = 1 … `longest`, the places of the n-grams that occur more than once.

    `key` [N] tells the tokens apart and `text` [N] says which text each belongs to; n-grams do not cross texts. Yields
    (position, code) for each n, ordered by code: equal n-grams have equal codes, numbered from 0. An n-gram can be a
    repeat only where both (n−1)-grams in it are, so each n sorts only what is left of the one before: for human text
    the work is one sort, whatever `longest` is.

    >>> key, text = np.array([5, 6, 5, 6, 7]), np.zeros(5, int)
    >>> [(position.tolist(), code.tolist()) for position, code in repeated_ngrams(key, text, 3)]
    [([0, 2, 1, 3], [0, 0, 1, 1]), ([0, 2], [0, 0]), ([], [])]
    """
    position = np.arange(len(key))
    for _ in range(longest):
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        new = np.ones(len(ranked) + 1, bool)  # where a group of equals begins, and one past the end
        np.not_equal(ranked[1:], ranked[:-1], out=new[1:-1])
        repeated = ~(new[:-1] & new[1:])
        position = position[order[repeated]]
        new = new[:-1][repeated]
        code = np.cumsum(new) - 1
        yield position, code
        at = np.full(len(text) + 1, -1)
        at[position] = code
        position = np.flatnonzero((at[:-1] >= 0) & (at[1:] >= 0))
        position = position[text[position] == text[position + 1]]
        key = at[position] * len(text) + at[position + 1]


def duplicates(coded: CodedTexts, longest: int) -> Ints:
    """Count the n-grams that a text has used before, for n = 1 … `longest`: [longest, texts].

    >>> duplicates(WordCoder().encode(["a b a b", "a b c"]), 2).tolist()
    [[2, 0], [1, 0]]
    """
    texts = len(coded.lengths)
    counts = np.zeros((longest, texts), np.int64)
    within_text = coded.text * coded.vocabulary + coded.ids
    for n, (position, code) in enumerate(repeated_ngrams(within_text, coded.text, longest)):
        again = position[1:][code[1:] == code[:-1]]
        counts[n] = np.bincount(coded.text[again], minlength=texts)
    return counts
