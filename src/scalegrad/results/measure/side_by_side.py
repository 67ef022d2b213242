"""Several systems' texts and human text in one table: figures with intervals, paired differences, what to mind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad.counts import are, counted
from scalegrad.metrics import repetition
from scalegrad.metrics.significance import bootstrap, paired_bootstrap, permutation_test
from scalegrad.metrics.variety import diversity_of
from scalegrad.results.measure.grouped_values import GroupedValues
from scalegrad.results.measure.human import embedded_blocks
from scalegrad.results.measure.measurement import PER_TEXT, Measurement, Quote, measure

Floats = NDArray[np.float64]

FIGURES = ("rep_1", "rep_2", "rep_3", "rep_4", "diversity", "stuck", "loop", "compression", "words")
PAIRED = ("rep_1", "rep_2", "rep_3", "rep_4", "diversity", "stuck", "compression")
_ENOUGH = 5_000  # blocks of human text: their Rep-n have intervals of .002
_SWAPS = 2_000  # of the permutation test, so that p goes down to .0005


@dataclass(frozen=True)
class Figure:
    """The mean of a figure over texts with its 95% bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One system's figures, or human text's. `uniq_w` is counted over `uniq_w_texts` texts (None: cannot be)."""

    name: str
    human: bool
    texts: int
    scored: int
    median_words: int
    uniq_w: int | None
    uniq_w_texts: int
    figures: dict[str, Figure]


@dataclass(frozen=True)
class Difference:
    """`first` minus `second`, a text of one against the same text of the other."""

    first: str
    second: str
    figures: dict[str, Figure]
    p_values: dict[str, float]


@dataclass(frozen=True)
class MeasureReport:
    """All that `scalegrad measure` shows."""

    rows: list[Row]
    differences: list[Difference]
    worst: dict[str, list[Quote]]
    notes: list[str]

    def human_row(self, row: Row) -> Row | None:
        """The human row closest in length to a system's row."""
        human = [other for other in self.rows if other.human]
        return min(human, key=lambda other: abs(other.median_words - row.median_words), default=None)


def build_report(systems: Sequence[Measurement], human: Sequence[Measurement] = ()) -> MeasureReport:
    """Put measured systems side by side, with human text: `human`, or embedded text cut to the systems' lengths.

    Systems with as many texts as the first one (those left out included) are compared with it text by text.

    >>> looping = measure(["he said that he said that he said that he said that"] * 20, "looping")
    >>> report = build_report([looping])
    >>> [(row.name, row.figures["rep_1"].mean) for row in report.rows]
    [('looping', 0.75), ('human (12 words)', 0.06...)]
    """
    rows = [_row(system) for system in systems]
    if human:
        rows += [_row(text, human=True) for text in human]
    else:
        rows += embedded_human_rows(systems)
    first, *others = systems
    differences = [_difference(other, first) for other in others if other.texts_read == first.texts_read]
    notes = _notes_on_beginnings([*systems, *human]) + _notes(systems, rows)
    return MeasureReport(rows, differences, {system.name: system.worst for system in systems}, notes)


def embedded_human_rows(systems: Sequence[Measurement]) -> list[Row]:
    """A row of embedded human text for each length the systems have (lengths within 10% share one).

    Its uniq-w is counted over as many blocks as the systems of that length have texts, spread over the corpus.
    """
    rows: list[Row] = []
    by_length: dict[int, list[Measurement]] = {}
    for system in systems:
        near = [length for length in by_length if abs(length - system.median_words) <= 0.1 * length]
        by_length.setdefault(near[0] if near else system.median_words, []).append(system)
    for length, alike in by_length.items():
        wikitext_form = any(system.wikitext > 0.01 * system.texts for system in alike)
        blocks = list(embedded_blocks(max(length, 1), wikitext_form))
        if len(blocks) < 2:
            continue  # longer than the corpus; the notes say so
        wanted = min(system.texts for system in alike)
        uniq_w = int(repetition(_spread(blocks, wanted))["uniq_w"]) if wanted <= len(blocks) else None
        name = f"human ({counted(length, 'word')}{', WikiText form' if wikitext_form else ''})"
        rows.append(_row(measure(_spread(blocks, _ENOUGH), name, worst=0), human=True, uniq_w=(uniq_w, wanted)))
    return rows


def _spread(blocks: list[str], wanted: int) -> list[str]:
    """`wanted` blocks at equal distances, or all if there are not so many."""
    count = min(wanted, len(blocks))
    return [blocks[number * len(blocks) // count] for number in range(count)]


def _row(measured: Measurement, human: bool = False, uniq_w: tuple[int | None, int] | None = None) -> Row:
    count, counted_on = uniq_w or (measured.uniq_w, measured.texts)
    return Row(
        measured.name,
        human,
        measured.texts,
        measured.scored,
        measured.median_words,
        count,
        counted_on,
        {name: _figure(measured.values, name) for name in FIGURES},
    )


def _diversity(reps: Floats) -> float:
    """The diversity of texts with these Rep-2, Rep-3 and Rep-4 [texts, 3]."""
    scored = reps[~np.isnan(reps[:, 0])]
    return diversity_of(*scored.mean(axis=0).tolist()) if len(scored) else float("nan")


def _items(values: GroupedValues, name: str) -> tuple[Floats, dict[str, Any]]:
    """What to resample for a figure, and the statistic to take of it."""
    if name == "diversity":
        return np.stack([values.groups(f"rep_{n}") for n in (2, 3, 4)], axis=1), {"statistic": _diversity}
    return values.groups(name), {}


def _figure(values: GroupedValues, name: str) -> Figure:
    items, statistic = _items(values, name)
    interval = bootstrap(items, **statistic)
    exact = values.mean(name) if name in PER_TEXT else interval.estimate
    return Figure(exact, interval.low, interval.high)


def _difference(system: Measurement, first: Measurement) -> Difference:
    figures, p_values = {}, {}
    for name in PAIRED:
        (a, statistic), (b, _) = _items(system.values, name), _items(first.values, name)
        interval = paired_bootstrap(a, b, **statistic)
        exact = system.values.mean(name) - first.values.mean(name) if name in PER_TEXT else interval.estimate
        figures[name] = Figure(exact, interval.low, interval.high)
        p_values[name] = permutation_test(a, b, resamples=_SWAPS, **statistic).p_value
    return Difference(system.name, first.name, figures, p_values)


def _notes(systems: Sequence[Measurement], rows: Sequence[Row]) -> list[str]:
    """What a reader must know to compare these rows."""
    notes = []
    lengths = {system.name: system.median_words for system in systems}
    if max(lengths.values()) > 1.1 * min(lengths.values()):
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        hint = ": --words N compares the first N words of texts that have as many" if min(lengths.values()) else ""
        notes.append(f"The systems differ in length (median words: {told}), and repetition grows with length{hint}.")
    if min(lengths.values()) < 5:
        notes.append("Rep-n counts words: texts of so few words, or in a script without spaces, it says little about.")
    for system in systems[1:]:
        if system.texts_read != systems[0].texts_read:
            counts = f"{system.texts_read:,} and {counted(systems[0].texts_read, 'text')}"
            notes.append(f"{system.name} and {systems[0].name} have {counts}: they cannot be compared text by text.")
    notes += _notes_on_human_text([row for row in rows if row.human], lengths.values())
    if len({row.uniq_w_texts for row in rows}) > 1:
        notes.append("uniq-w grows with the number of texts: compare it only between rows with as many.")
    for system in systems:
        if system.scored < system.texts:
            short = system.texts - system.scored
            notes.append(
                f"{system.name}: {counted(short, 'text')} of three word tokens or fewer {are(short)} left out of Rep-n."
            )
        if system.values.group_size > 1:
            size = system.values.group_size
            notes.append(f"{system.name} is long: its intervals resample groups of {size} neighbouring texts.")
    return notes


def _notes_on_beginnings(measurements: Sequence[Measurement]) -> list[str]:
    notes = []
    for measured in measurements:
        if beginnings := measured.beginnings:
            notes.append(f"Texts are cut after {counted(beginnings.words, 'word')}; those with fewer are left out.")
            too_short, left_out = beginnings.too_short, beginnings.left_out
            reasons = {"too short": too_short, "too short only in another file": left_out - too_short}
            told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
            if told:
                of = counted(measured.texts_read, "text")
                notes.append(f"{measured.name}: {left_out:,} of {of} {are(left_out)} left out: {told}.")
    return list(dict.fromkeys(notes))  # all are cut to one length: said once


def _notes_on_human_text(human: Sequence[Row], lengths: Collection[int]) -> list[str]:
    if not human:
        return ["These texts are too long for a human reference from the embedded corpus; give one with --human."]
    notes = []
    for row in human:
        if not any(abs(row.median_words - length) <= 0.1 * length for length in lengths):
            notes.append(
                f"{row.name} has {counted(row.median_words, 'word')} a text (median): another length than the systems."
            )
        if row.uniq_w is None:
            notes.append(
                f"{row.name} has no uniq-w: the embedded corpus has fewer than {counted(row.uniq_w_texts, 'text')}."
            )
        elif row.uniq_w_texts != row.texts:
            notes.append(
                f"uniq-w of human text is counted on {counted(row.uniq_w_texts, 'text')}, as many as the systems have."
            )
    return list(dict.fromkeys(notes))  # rows of several lengths say the same once


def report_as_dict(report: MeasureReport) -> dict[str, Any]:
    """The report as plain JSON values; what is not defined (NaN) is null."""
    return {
        "rows": [
            {
                "name": row.name,
                "human": row.human,
                "texts": row.texts,
                "scored": row.scored,
                "median_words": row.median_words,
                "uniq_w": row.uniq_w,
                "uniq_w_texts": row.uniq_w_texts,
                "figures": {name: _plain(vars(figure)) for name, figure in row.figures.items()},
            }
            for row in report.rows
        ],
        "differences": [
            {
                "first": pair.first,
                "second": pair.second,
                "figures": {
                    name: _plain(vars(figure) | {"p_value": pair.p_values[name]})
                    for name, figure in pair.figures.items()
                },
            }
            for pair in report.differences
        ],
        "worst": {name: [_plain(vars(quote)) for quote in quotes] for name, quotes in report.worst.items()},
        "notes": report.notes,
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in values.items()}
