"""The first words of each text, so that systems whose texts differ in length can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics import clean_up_spaces
from scalegrad.results.measure.human import first_words

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Beginnings:
    """Which texts of a file are measured, and how much of them: the first `words` words of those that have as many.

    `lengths` [texts of the file] are the words of each text. `shortest` [texts of the file] are the fewest words that a
    file with as many texts has there: a text too short in one of these files is left out of all, so that they pair.

    >>> beginnings = Beginnings(2, lengths=np.array([3, 1, 2]), shortest=np.array([0, 1, 2]))
    >>> list(beginnings.of(["a b c", "a", "a b"])), beginnings.numbers.tolist()
    (['a b'], [3])
    >>> beginnings.too_short, beginnings.left_out
    (1, 2)
    """

    words: int
    lengths: Ints
    shortest: Ints

    def of(self, texts: Iterable[str]) -> Iterator[str]:
        """Of all texts of the file, the beginnings of those that are measured."""
        return first_words(compress(texts, self.shortest >= self.words), self.words)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Where the texts that are measured stand in the file, counted from 1."""
        return np.flatnonzero(self.shortest >= self.words) + 1

    @property
    def too_short(self) -> int:
        """How many texts of this file have fewer words."""
        return int((self.lengths < self.words).sum())

    @property
    def left_out(self) -> int:
        """How many texts are not measured: too short in this file, or in another that it is compared with."""
        return int((self.shortest < self.words).sum())


def word_counts(texts: Iterable[str]) -> Ints:
    """The words of each text, between spaces, after the clean-up: what a first reading of a file remembers.

    >>> word_counts(["It 's late .", "", "so it goes"]).tolist()
    [2, 0, 3]
    """
    return np.fromiter((len(clean_up_spaces(text).split()) for text in texts), np.int32)


def paired_beginnings(lengths: Mapping[str, Ints], words: int) -> list[Beginnings]:
    """The beginnings of files, given the words of each text of each; files with equally many texts keep the same ones.

    >>> a, b = paired_beginnings({"a": np.array([3, 1, 2]), "b": np.array([0, 5, 2])}, words=2)
    >>> a.numbers.tolist(), b.numbers.tolist()
    ([3], [3])
    """
    for name, own in lengths.items():
        _check(words, own, name)
    beginnings = []
    for own in lengths.values():
        alike = [name for name, other in lengths.items() if len(other) == len(own)]
        shortest = np.minimum.reduce([lengths[name] for name in alike])
        _check(words, shortest, f"each of {', '.join(alike)}, compared text by text")
        beginnings.append(Beginnings(words, own, shortest))
    return beginnings


def _check(words: int, lengths: Ints, where: str) -> None:
    """Refuse more words than the longest text has."""
    longest = lengths.max()
    if longest == 0:
        raise ValueError(f"none of the texts read has a word in {where}")
    if longest < words:
        raise ValueError(f"words is {words}; expected at most {longest}: none of the texts read has more in {where}")
