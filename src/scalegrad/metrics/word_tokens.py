"""Texts as word tokens, and word tokens as integers: what the repetition figures count."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WORD = re.compile(r"\w+|[^\w\s]|\n")

# A batch holds about this many characters, which keeps its arrays in the cache: about 1 MiB each for English.
BATCH_CHARACTERS = 1 << 19
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
        self._sizes: Ints = np.empty(0, np.int64)  # [pieces] how many words it has
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
        sizes = self._sizes[pieces]
        after = np.cumsum(sizes)
        at = np.repeat(self._first[pieces] - after + sizes, sizes)
        at += np.arange(len(at))
        lengths = np.diff(np.concatenate([[0], after])[np.array(ends)])
        return CodedTexts(self._ids[at], np.repeat(np.arange(len(lengths)), lengths), lengths, len(self._words))

    def _take_apart(self, known: int) -> None:
        """Find the words of the pieces after the first `known` ones."""
        new: list[str] = []
        ends = [0]
        for piece in islice(self.pieces, known, None):
            if piece.isalnum():  # a single word, without asking the pattern
                new.append(piece)
            else:
                new += WORD.findall(piece)
            ends.append(len(new))
        sizes = np.diff(ends)
        ids = list(map(self._words.__getitem__, new))
        self._first = np.concatenate([self._first, len(self._ids) + np.array(ends[:-1])])
        self._sizes = np.concatenate([self._sizes, sizes])
        self._ids = np.concatenate([self._ids, np.array(ids, np.int64)])


def numbering() -> dict[str, int]:
    """A dictionary that gives each new key the next number: what `d[key]` costs is one lookup, with no test."""
    return defaultdict(count().__next__)


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


def repeated_ngrams(key: Ints, text: Ints, longest: int) -> Iterator[tuple[Ints, Ints]]:
    """Find, for n = 1 … `longest`, the places of the n-grams that occur more than once.

    `key` [N] tells the tokens apart and `text` [N] says which text each belongs to; n-grams do not cross texts. Yields
    for each n the places in order, and for each place that of an equal n-gram, the same one for all equals. An n-gram
    can be a repeat only where both (n−1)-grams in it are, so each n looks only at what is left of the one before.

    >>> key, text = np.array([5, 6, 5, 6, 7]), np.zeros(5, int)
    >>> [(place.tolist(), equal.tolist()) for place, equal in repeated_ngrams(key, text, 3)]
    [([0, 1, 2, 3], [2, 3, 2, 3]), ([0, 2], [2, 2]), ([], [])]
    """
    place = np.arange(len(key))
    for _ in range(longest):
        equal = equals(key)
        other = np.flatnonzero(equal != np.arange(len(key)))
        equal_at = np.full(len(text) + 1, -1)
        equal_at[place[other]] = equal_at[place[equal[other]]] = place[equal[other]]
        repeated = equal_at >= 0
        place = np.flatnonzero(repeated)
        yield place, equal_at[place]
        place = np.flatnonzero(repeated[:-1] & repeated[1:])
        place = place[text[place] == text[place + 1]]
        key = equal_at[place] * len(text) + equal_at[place + 1]


def equals(key: Ints) -> Ints:
    """For each number the index of an equal one, the same index for all equals: [N].

    A hash table by hand: every index is written into the slot of its number, the last one written stays, and those that
    find an equal number there are done; the others meet in other slots next time. Several times faster than sorting.

    >>> equals(np.array([7, 8, 7, 7])).tolist()
    [3, 1, 3, 3]
    """
    bits = (2 * len(key)).bit_length()
    table = np.empty(1 << bits, np.int32)
    found = np.empty(len(key), np.int32)
    waiting, keys = np.arange(len(key), dtype=np.int32), key
    factor = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: neighbours land far apart
    while len(waiting):
        slot = ((keys.view(np.uint64) * np.uint64(factor)) >> np.uint64(64 - bits)).view(np.int64)
        table[slot] = waiting
        met = table[slot]
        found[waiting] = met
        apart = np.flatnonzero(key[met] != keys)
        waiting, keys = waiting[apart], keys[apart]
        factor = factor * 0xD1342543DE82EF95 % 2**64  # odd as well
    return found.astype(np.int64)


def duplicates(coded: CodedTexts, longest: int) -> Ints:
    """Count the n-grams that a text has used before, for n = 1 … `longest`: [longest, texts].

    >>> duplicates(WordCoder().encode(["a b a b", "a b c"]), 2).tolist()
    [[2, 0], [1, 0]]
    """
    texts = len(coded.lengths)
    counts = np.zeros((longest, texts), np.int64)
    within_text = coded.text * coded.vocabulary + coded.ids
    for n, (place, equal) in enumerate(repeated_ngrams(within_text, coded.text, longest)):
        counts[n] = np.bincount(coded.text[place[place != equal]], minlength=texts)
    return counts
