"""What summaries are scored by: overlap with the references, repetition, length and novelty, with intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scalegrad.data.pairs import Pair
from scalegrad.data.sentences import sentences
from scalegrad.metrics import bootstrap, moverscore, repetition_per_text, rouge_per_text

Floats = NDArray[np.float64]
Figures = dict[str, dict[str, float]]  # name → value, low, high, n

_WORD = re.compile(r"\w+")
ROUGE = ("rouge_1", "rouge_2", "rouge_l")


def score(
    summaries: Sequence[str],
    pairs: Sequence[Pair],
    mover: bool = True,
    device: str = "cpu",
    encoder: str | None = None,
    resamples: int = 1000,
) -> Figures:
    """The figures of a system, for `runs.rows_of`: each a value with its 95% bootstrap interval over texts.

    rouge_1, rouge_2 and rouge_l are F1 × 100 (of several references the best; rouge_l is the summary-level one, each
    sentence against each); moverscore_1 is MoverScore-1 × 100 (`encoder` as there); rep_1 … rep_4; `words`, the length;
    novelty_1 … novelty_3, the share of a summary's distinct n-grams that its article does not have; `empty`, how many
    summaries are without a word.
    """
    figures = _intervals(per_text(summaries, pairs, mover, device, encoder), resamples)
    return figures | {"empty": {"value": sum(not text.strip() for text in summaries), "n": len(summaries)}}


def per_text(
    summaries: Sequence[str], pairs: Sequence[Pair], mover: bool = True, device: str = "cpu", encoder: str | None = None
) -> dict[str, Floats]:
    """The figures of each summary, [texts] each; NaN where a text is too short for one."""
    if len(summaries) != len(pairs):
        raise ValueError(f"summaries and articles must be as many, not {len(summaries)} and {len(pairs)}")
    references = [list(pair.references) for pair in pairs]
    values = {name: 100 * column for name, column in rouge(summaries, pairs).items()}
    if mover:
        values["moverscore_1"] = 100 * moverscore(summaries, references, encoder=encoder, device=device).per_text
    return values | _own_figures(summaries, pairs)


def rouge(summaries: Sequence[str], pairs: Sequence[Pair]) -> dict[str, Floats]:
    """ROUGE-1, -2 and summary-level -L F1 of each summary, from 0 to 1."""
    by_sentence = ["\n".join(sentences(text)) for text in summaries]
    found = rouge_per_text(by_sentence, [list(pair.references) for pair in pairs])
    return {"rouge_1": found["rouge_1"], "rouge_2": found["rouge_2"], "rouge_l": found["rouge_lsum"]}


def mean_rouge(summaries: Sequence[str], pairs: Sequence[Pair]) -> float:
    """The mean of ROUGE-1, -2 and -L F1 × 100: what settings are chosen by on the validation set."""
    return 100 * float(np.mean([column.mean() for column in rouge(summaries, pairs).values()]))


def novelty(summary: str, source: str, n: int) -> float:
    """The share of the summary's distinct n-grams of words that do not occur in its source; NaN where it has none.

    >>> novelty("The dog ate it", "the dog slept", 1), novelty("The dog ate it", "the dog slept", 2)  # ate, it
    (0.5, 0.6666666666666666)
    """
    own, theirs = _ngrams(summary, n), _ngrams(source, n)
    return len(own - theirs) / len(own) if own else float("nan")


def human(pairs: Sequence[Pair], resamples: int = 1000) -> Figures:
    """Repetition, length and novelty of the first references: the row to compare with."""
    return _intervals(_own_figures([pair.references[0] for pair in pairs], pairs), resamples)


def _own_figures(summaries: Sequence[str], pairs: Sequence[Pair]) -> dict[str, Floats]:
    """What needs no reference: Rep-n, words and novelty of each summary."""
    values = dict(repetition_per_text(" ".join(text.split()) for text in summaries))
    values["words"] = np.array([float(len(_WORD.findall(text))) for text in summaries])
    for n in (1, 2, 3):
        shares = [novelty(text, pair.text, n) for text, pair in zip(summaries, pairs, strict=True)]
        values[f"novelty_{n}"] = np.array(shares)
    return values


def _intervals(values: dict[str, Floats], resamples: int) -> Figures:
    figures = {}
    for name, column in values.items():
        interval = bootstrap(column, resamples=resamples)
        figures[name] = {"value": interval.estimate, "low": interval.low, "high": interval.high, "n": len(column)}
    return figures


def _ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return set(zip(*(words[shift:] for shift in range(n)), strict=False))
