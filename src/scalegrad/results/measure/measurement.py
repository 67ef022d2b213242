"""How repetitive is a stream of texts? One pass, bounded memory: figures for each text, and the worst texts quoted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics import Loop, RepetitionCounter, clean_up_spaces, compression_ratio, longest_loops, words
from scalegrad.metrics.word_tokens import WORD, batches
from scalegrad.results.measure.beginnings import Beginnings
from scalegrad.results.measure.grouped_values import GroupedValues
from scalegrad.results.measure.human import first_words, looks_like_wikitext

Floats = NDArray[np.float64]

PER_TEXT = ["rep_1", "rep_2", "rep_3", "rep_4", "stuck", "loop", "compression", "words"]

_BEFORE, _INSIDE, _AFTER = 60, 320, 60  # characters of a quoted text: before its loop, of the loop, after it


@dataclass(frozen=True)
class Quote:
    """One of the worst texts: where it stands, and a piece of it with the loop apart from what surrounds it.

    `number` counts the texts from 1, those left out included; `loop` is empty for a text without one, and of a long
    cycle shows where it begins and where it is said again. Lengths are in word tokens (words and punctuation marks), as
    the loop finder counts; `repeats` says how often the loop's cycle is said.
    """

    number: int
    before: str
    loop: str
    after: str
    tokens: int
    loop_tokens: int
    repeats: float
    rep_1: float

    @property
    def cycle_tokens(self) -> int:
        """How many tokens the cycle has that the loop repeats (0 for a text without a loop)."""
        return max(round(self.loop_tokens / self.repeats), 1) if self.loop else 0


@dataclass
class Measurement:
    """What was measured on one system's texts; `measure` makes it.

    `values` holds the figures of each text under the names of `PER_TEXT`: Rep-n; whether the text ends stuck in a loop;
    the word tokens of that loop (only for texts that are stuck); how many times shorter the text gets when compressed;
    its words between spaces.
    """

    name: str
    values: GroupedValues = field(default_factory=lambda: GroupedValues(PER_TEXT))
    uniq_w: int = 0
    scored: int = 0  # texts long enough for Rep-n
    wikitext: int = 0  # texts with WikiText's marks
    lengths: Counter[int] = field(default_factory=Counter)  # words -> texts
    worst: list[Quote] = field(default_factory=list)
    beginnings: Beginnings | None = None  # what was measured of the texts, if not all

    @property
    def texts(self) -> int:
        """How many texts were measured."""
        return self.values.texts

    @property
    def texts_read(self) -> int:
        """How many texts there are, those left out included; systems with equally many pair."""
        return self.texts + (self.beginnings.left_out if self.beginnings else 0)

    @property
    def median_words(self) -> int:
        """The length of the middle text, in words between spaces."""
        below, middle = 0, (self.texts + 1) // 2
        for length in sorted(self.lengths):
            below += self.lengths[length]
            if below >= middle:
                return length
        return 0


def measure(
    texts: Iterable[str],
    name: str,
    worst: int = 3,
    beginnings: Beginnings | None = None,
    at_most: int | None = None,
) -> Measurement:
    """Measure `texts`, or only their `beginnings`, or `at_most` so many words of each, in one pass; quote `worst`.

    Every text first goes through the paper's clean-up of tokenisation spaces (`metrics.clean_up_spaces`), so that a
    model's texts and human text that come with and without such spaces compare; only then is it cut. A text is *stuck*
    if its longest loop (`metrics.longest_loop`) runs to its end, give or take one token, which may be cut.

    >>> measured = measure(["the cat sat on the mat", "so it goes and goes and goes and goes and goes"], "two texts")
    >>> measured.values.mean("stuck"), measured.values.mean("loop"), measured.median_words, measured.uniq_w
    (0.5, 9.0, 6, 9)
    >>> measured.worst[0].before, measured.worst[0].loop
    ('so it ', 'goes and goes and goes and goes and goes')
    """
    measured = Measurement(name, beginnings=beginnings)
    counter = RepetitionCounter()
    measurable: Iterable[str] = map(clean_up_spaces, texts)
    if beginnings:
        measurable = beginnings.of(measurable)
    if at_most is not None:
        measurable = first_words(measurable, at_most)
    for batch in batches(measurable):
        figures: dict[str, Floats] = counter.add(batch)
        loops = _loops(batch, figures["rep_4"])
        looped = [loop.length if loop else 0 for loop in loops]
        stuck = [loop is not None and _runs_to_the_end(loop, text) for loop, text in zip(loops, batch, strict=True)]
        lengths = [len(text.split()) for text in batch]
        figures["stuck"] = np.array(stuck, dtype=np.float64)
        figures["loop"] = np.where(stuck, np.array(looped, dtype=np.float64), np.nan)
        figures["compression"] = np.array([compression_ratio([text]) for text in batch])
        figures["words"] = np.array(lengths, dtype=np.float64)
        _keep_worst(measured, batch, loops, looped, figures["rep_1"], worst)
        measured.values.add(figures)
        measured.lengths.update(lengths)
        measured.wikitext += sum(map(looks_like_wikitext, batch))
    result = counter.result()
    measured.uniq_w, measured.scored = int(result["uniq_w"]), int(result["n_texts"])
    if beginnings:
        numbers = beginnings.numbers
        measured.worst = [replace(quote, number=int(numbers[quote.number - 1])) for quote in measured.worst]
    return measured


def _loops(batch: list[str], rep_4: Floats) -> list[Loop | None]:
    """The longest loop of each text; a loop of eight words says a 4-gram twice, so most texts need no search."""
    suspects = np.flatnonzero(rep_4 > 0)
    loops: list[Loop | None] = [None] * len(batch)
    for index, loop in zip(suspects, longest_loops(batch[index] for index in suspects), strict=True):
        loops[index] = loop
    return loops


def _runs_to_the_end(loop: Loop, text: str) -> bool:
    assert loop.span is not None  # it was found in a text
    return len(words(text[loop.span[1] :][:200])) <= 1


def _keep_worst(
    measured: Measurement, batch: list[str], loops: list[Loop | None], looped: list[int], rep_1: Floats, worst: int
) -> None:
    """Of the texts so far keep those with the longest loops; among texts without one, the most repetitive."""
    most = np.lexsort((np.nan_to_num(-rep_1, nan=1.0), -np.array(looped)))[:worst]
    first = measured.texts + 1
    for index in most:
        if not np.isnan(rep_1[index]):
            quote = _quote(batch[index], loops[index], first + int(index), looped[index], float(rep_1[index]))
            measured.worst.append(quote)
    measured.worst.sort(key=lambda quote: (-quote.loop_tokens, -quote.rep_1, quote.number))
    del measured.worst[worst:]


def _quote(text: str, loop: Loop | None, number: int, looped: int, rep_1: float) -> Quote:
    start, end = loop.span if loop and loop.span else (len(text), len(text))
    before, inside, after = text[:start], text[start:end], text[end:]
    if loop is None and len(before) > _BEFORE + _INSIDE:
        before = before[: _BEFORE + _INSIDE] + "…"
    elif len(before) > _BEFORE:
        before = "…" + before[-_BEFORE:]
    if loop and len(inside) > _INSIDE:
        again = next(islice(WORD.finditer(inside), loop.period, None)).start()  # where the cycle is said again
        half = _INSIDE // 2
        shows = again <= half
        inside = inside[:_INSIDE] + "…" if shows else f"{inside[:half]} … {inside[again : again + half]}…"
    after = after[:_AFTER] + "…" if len(after) > _AFTER else after
    return Quote(number, before, inside, after, len(words(text)), looped, loop.repeats if loop else 0.0, rep_1)
