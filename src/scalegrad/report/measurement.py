"""How repetitive is a stream of texts? One pass, bounded memory: figures for each text, and the worst texts quoted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics import Loop, RepetitionCounter, clean_up_spaces, compression_ratio, longest_loops, words
from scalegrad.metrics.word_tokens import batches
from scalegrad.report.grouped_values import GroupedValues
from scalegrad.report.human_reference import looks_like_wikitext

Floats = NDArray[np.float64]

PER_TEXT = ["rep_1", "rep_2", "rep_3", "rep_4", "stuck", "loop", "compression", "words"]

_BEFORE, _INSIDE, _AFTER = 120, 400, 60  # characters of a quoted text: before its loop, of the loop, after it


@dataclass(frozen=True)
class Quote:
    """One of the worst texts: where it stands, and a piece of it with the loop apart from what surrounds it.

    `number` counts texts from 1; `loop` is empty for a text without one. `cycle` and `repeats` say how many word tokens
    the loop's cycle has and how often it is said.
    """

    number: int
    before: str
    loop: str
    after: str
    tokens: int
    loop_tokens: int
    cycle: int
    repeats: float
    rep_1: float


@dataclass
class Measurement:
    """What was measured on one system's texts; `measure` makes it.

    `values` holds the figures of each text under the names of `PER_TEXT`: Rep-n; whether the text ends stuck in a loop;
    how many word tokens that loop has (only texts that are stuck have one); how far the text compresses; its words.
    """

    name: str
    values: GroupedValues = field(default_factory=lambda: GroupedValues(PER_TEXT))
    uniq_w: int = 0
    scored: int = 0  # texts long enough for Rep-n
    wikitext: int = 0  # texts with WikiText's marks
    lengths: Counter[int] = field(default_factory=Counter)  # words -> texts
    worst: list[Quote] = field(default_factory=list)

    @property
    def texts(self) -> int:
        """How many texts were read."""
        return self.values.texts

    @property
    def median_words(self) -> int:
        """The length of the middle text, in words between spaces."""
        below, middle = 0, (self.texts + 1) // 2
        for length in sorted(self.lengths):
            below += self.lengths[length]
            if below >= middle:
                return length
        return 0


def measure(texts: Iterable[str], name: str, worst: int = 3) -> Measurement:
    """Measure `texts` in one pass; `worst` of them are quoted.

    Every text first goes through the paper's clean-up of tokenisation spaces (`metrics.clean_up_spaces`), so that a
    model's texts and human text that come with and without such spaces compare. A text is *stuck* if its longest loop
    (`metrics.longest_loop`) runs to its end, give or take one token, which may be cut.

    >>> measured = measure(["the cat sat on the mat", "so it goes and goes and goes and goes and goes"], "two texts")
    >>> measured.values.mean("stuck"), measured.values.mean("loop"), measured.median_words, measured.uniq_w
    (0.5, 9.0, 6, 9)
    >>> measured.worst[0].before, measured.worst[0].loop
    ('so it ', 'goes and goes and goes and goes and goes')
    """
    measured = Measurement(name)
    counter = RepetitionCounter()
    for batch in batches(clean_up_spaces(text) for text in texts):
        figures: dict[str, Floats] = counter.add(batch)
        loops = longest_loops(batch)
        stuck = [loop is not None and _runs_to_the_end(loop, text) for loop, text in zip(loops, batch, strict=True)]
        lengths = [len(text.split()) for text in batch]
        figures["stuck"] = np.array(stuck, dtype=np.float64)
        held = (loop.length if loop and ends else np.nan for loop, ends in zip(loops, stuck, strict=True))
        figures["loop"] = np.fromiter(held, np.float64, len(batch))
        figures["compression"] = np.array([compression_ratio([text]) for text in batch])
        figures["words"] = np.array(lengths, dtype=np.float64)
        _keep_worst(measured, batch, loops, figures["rep_1"], worst)
        measured.values.add(figures)
        measured.lengths.update(lengths)
        measured.wikitext += sum(map(looks_like_wikitext, batch))
    result = counter.result()
    measured.uniq_w, measured.scored = int(result["uniq_w"]), int(result["n_texts"])
    return measured


def _runs_to_the_end(loop: Loop, text: str) -> bool:
    assert loop.span is not None  # it was found in a text
    return len(words(text[loop.span[1] :][:200])) <= 1


def _keep_worst(
    measured: Measurement, batch: list[str], loops: list[Loop | None], rep_1: Floats, worst: int
) -> None:
    """Of the texts so far keep those with the longest loops; among texts without one, the most repetitive."""
    if not worst:
        return
    tokens = np.array([loop.length if loop else 0 for loop in loops])
    most = np.lexsort((np.nan_to_num(-rep_1, nan=1.0), -tokens))[:worst]
    first = measured.values.texts + 1
    new = [_quote(batch[index], loops[index], first + int(index), float(rep_1[index])) for index in most]
    kept = [quote for quote in (*measured.worst, *new) if not np.isnan(quote.rep_1)]
    measured.worst = sorted(kept, key=lambda quote: (-quote.loop_tokens, -quote.rep_1, quote.number))[:worst]


def _quote(text: str, loop: Loop | None, number: int, rep_1: float) -> Quote:
    start, end = (loop.span or (0, 0)) if loop else (len(text), len(text))
    before, inside, after = text[:start], text[start:end], text[end:]
    if len(before) > _BEFORE and loop:
        before = "…" + before[-_BEFORE:]
    elif len(before) > _BEFORE + _INSIDE:
        before = before[: _BEFORE + _INSIDE] + "…"
    inside = inside[:_INSIDE] + "…" if len(inside) > _INSIDE else inside
    after = after[:_AFTER] + "…" if len(after) > _AFTER else after
    size, cycle, repeats = (loop.length, loop.period, loop.repeats) if loop else (0, 0, 0.0)
    return Quote(number, before, inside, after, len(words(text)), size, cycle, repeats, rep_1)
