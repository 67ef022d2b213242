"""The longest loop of a text: where it gets stuck, and for how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.word_tokens import WORD, batches, checked_texts, ngrams, words

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Loop:
    """A stretch of tokens that repeats one cycle, at least twice, from its first token to its last.

    `start` is the index of its first token, `period` the length of the cycle and `length` that of the whole stretch, in
    tokens; `span` are the first character and the one after the last (None where tokens were given, not a text).
    """

    start: int
    period: int
    length: int
    span: tuple[int, int] | None = None

    @property
    def repeats(self) -> float:
        """How often the cycle is said, the last time perhaps in part."""
        return self.length / self.period

    @property
    def characters(self) -> int | None:
        """How many characters the loop covers."""
        return None if self.span is None else self.span[1] - self.span[0]


def longest_loop(text: str | Sequence[Hashable], min_tokens: int = 8, min_repeats: float = 2.0) -> Loop | None:
    """The loop that covers the most tokens of a text (or of a sequence of tokens), or None.

    A loop is a stretch in which every token equals the one `period` tokens before it, said at least `min_repeats` times
    and covering at least `min_tokens` tokens. Of equally long ones the shortest period counts, then the earliest. The
    comparison is exact: a cycle that changes one word a time is no loop.

    >>> text = "We see horses. The horses are brown. The horses are brown. The horses"
    >>> longest_loop(text)  # "horses." opens the first cycle, with the full stop before it
    Loop(start=3, period=5, length=13, span=(13, 69))
    >>> text[13:69]
    '. The horses are brown. The horses are brown. The horses'
    >>> longest_loop([7, 1, 2, 1, 2, 1, 2, 1, 2, 1]).repeats
    4.5
    >>> longest_loop("Nothing here is said twice.") is None
    True
    """
    if isinstance(text, str):
        return longest_loops([text], min_tokens, min_repeats)[0]
    _check_bounds(min_tokens, min_repeats)
    return _longest([text], min_tokens, min_repeats)[0]


def longest_loops(texts: Iterable[str], min_tokens: int = 8, min_repeats: float = 2.0) -> list[Loop | None]:
    """`longest_loop` of each text; many texts at once are far cheaper than one by one.

    >>> [loop and loop.period for loop in longest_loops(["no no no no no no no no", "yes"])]
    [1, None]
    """
    _check_bounds(min_tokens, min_repeats)
    result: list[Loop | None] = []
    for batch in batches(checked_texts(texts)):
        loops = _longest(list(map(words, batch)), min_tokens, min_repeats)
        result += [loop and _with_span(loop, text) for loop, text in zip(loops, batch, strict=True)]
    return result


def _check_bounds(min_tokens: int, min_repeats: float) -> None:
    if min_tokens < 2:
        raise ValueError(f"min_tokens must be at least 2, not {min_tokens}")
    if not min_repeats >= 2:
        raise ValueError(f"min_repeats must be at least 2, not {min_repeats}: a cycle said once is no loop")


def _with_span(loop: Loop, text: str) -> Loop:
    matches = list(islice(WORD.finditer(text), loop.start, loop.start + loop.length))
    return Loop(loop.start, loop.period, loop.length, (matches[0].start(), matches[-1].end()))


def _longest(texts: Sequence[Sequence[Hashable]], min_tokens: int, min_repeats: float) -> list[Loop | None]:
    """The longest loop of each text, without spans.

    In a loop at least half the tokens equal those one period before, so a text without a repeated n-gram of half
    `min_tokens` has none: nearly all human texts are settled by that.
    """
    loops: list[Loop | None] = [None] * len(texts)
    half = min(4, -(-min_tokens // 2))
    suspects = [i for i, tokens in enumerate(texts) if len(set(ngrams(tokens, half))) <= len(tokens) - half]
    if not suspects:
        return loops
    symbols: list[int] = []
    offset = []  # where each suspect starts
    numbers: dict[Hashable, int] = defaultdict(count(len(suspects)).__next__)
    for row, index in enumerate(suspects):
        offset.append(len(symbols))
        symbols += map(numbers.__getitem__, texts[index])
        symbols.append(row)  # a separator of its own, smaller than every word: no loop can contain one
    starts, periods, covered = _runs(np.array(symbols), min_repeats)
    long = covered >= min_tokens
    starts, periods, covered = starts[long], periods[long], covered[long]
    owner = np.searchsorted(offset, starts, side="right") - 1
    best = np.lexsort((starts, periods, -covered, owner))
    best = best[np.unique(owner[best], return_index=True)[1]]
    for run in best:
        row = owner[run]
        loops[suspects[row]] = Loop(int(starts[run] - offset[row]), int(periods[run]), int(covered[run]))
    return loops


def _runs(symbols: Ints, min_repeats: float) -> tuple[Ints, Ints, Ints]:
    """Starts, periods and lengths of all maximal repetitions (with doubles) of a string that ends in a separator.

    Bannai et al., "The runs theorem" (2017): the cycle of each maximal repetition is, at one of its places, the longest
    Lyndon word that starts there, for the alphabet or for its reverse. That word ends at the next smaller suffix. So
    there are two candidates a position; each is stretched to both sides as far as the period holds.
    """
    ranks = _block_ranks(symbols)
    order = ranks[-1]
    here = np.arange(len(symbols))
    first = np.concatenate([here, here])
    second = np.concatenate([_next_smaller(order), _next_smaller(-order)])
    inside = second < len(symbols)
    first, second = first[inside], second[inside]
    # Half of the repetition lies beside the candidate, so the period holds at one of its ends at least.
    holds = (symbols[first] == symbols[second]) | ((first > 0) & (symbols[first - 1] == symbols[second - 1]))
    first, second = first[holds], second[holds]
    after = _common(ranks, first, second, forward=True)
    before = _common(ranks, first - 1, second - 1, forward=False)
    period = second - first
    length = before + period + after
    often = length >= min_repeats * period
    return (first - before)[often], period[often], length[often]


def _block_ranks(symbols: Ints) -> list[Ints]:
    """Ranks of the blocks of 1, 2, 4, … symbols from each position, until all differ (prefix doubling).

    Equal blocks have equal ranks; the last list ranks the suffixes. A block that runs past the end holds the last
    separator and is like no other.
    """
    ranks = [np.unique(symbols, return_inverse=True)[1].astype(np.int64)]
    width = 1
    while ranks[-1].max() < len(symbols) - 1:
        key = ranks[-1] * (len(symbols) + 1)
        key[:-width] += ranks[-1][width:] + 1
        ranks.append(np.unique(key, return_inverse=True)[1].astype(np.int64))
        width *= 2
    return ranks


def _next_smaller(order: Ints) -> Ints:
    """For each position the next one with a smaller value, or the length."""
    values = order.tolist()
    nearest = [len(values)] * len(values)
    waiting: list[int] = []
    for position, value in enumerate(values):
        while waiting and values[waiting[-1]] > value:
            nearest[waiting.pop()] = position
        waiting.append(position)
    return np.array(nearest, np.int64)


def _common(ranks: list[Ints], first: Ints, second: Ints, forward: bool) -> Ints:
    """How many symbols agree from `first` and `second` (first < second) on, or backwards from them (both included)."""
    common = np.zeros(len(first), np.int64)
    size = len(ranks[0])
    for level in reversed(range(len(ranks))):
        width = 1 << level
        if forward:
            left, right = first + common, second + common
            valid = right < size
        else:
            left, right = first - common - width + 1, second - common - width + 1
            valid = left >= 0
        agree: NDArray[np.bool_] = valid & (ranks[level][left * valid] == ranks[level][right * valid])
        common += width * agree
    return common
