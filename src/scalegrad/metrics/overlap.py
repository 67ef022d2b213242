"""ROUGE and BLEU: overlap with references, through rouge-score and sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scalegrad.extras import need
from scalegrad.metrics.references import References, paired_references

Floats = NDArray[np.float64]

_ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL", "rouge_lsum": "rougeLsum"}


def rouge(predictions: Sequence[str], references: References, stem: bool = True) -> dict[str, float]:
    """ROUGE-1, -2, -L and -Lsum F1 from 0 to 1, averaged over texts: the mean of `rouge_per_text`.

    >>> {name: round(value, 4) for name, value in rouge(["the cat sat"], ["the cat ran"]).items()}
    {'rouge_1': 0.6667, 'rouge_2': 0.5, 'rouge_l': 0.6667, 'rouge_lsum': 0.6667}
    """
    return {name: float(values.mean()) for name, values in rouge_per_text(predictions, references, stem).items()}


def rouge_per_text(predictions: Sequence[str], references: References, stem: bool = True) -> dict[str, Floats]:
    """ROUGE-1, -2, -L and -Lsum F1 of each prediction, [texts] each, by rouge-score.

    `references` holds one text or several for each prediction; of several the best counts. ROUGE-Lsum takes each line
    for a sentence: put line breaks between sentences. `stem` compares Porter stems, as summarization does.

    >>> rouge_per_text(["a b\\nc d"], ["c d\\na b"])["rouge_l"]  # in a row only half of the words agree …
    array([0.5])
    >>> rouge_per_text(["a b\\nc d"], ["c d\\na b"])["rouge_lsum"]  # … sentence by sentence all do
    array([1.])
    """
    groups = paired_references(predictions, references)
    scorer = need("rouge_score.rouge_scorer", extra="measure").RougeScorer(list(_ROUGE.values()), use_stemmer=stem)
    scores = [scorer.score_multi(group, text) for text, group in zip(predictions, groups, strict=True)]
    return {name: np.array([score[theirs].fmeasure for score in scores]) for name, theirs in _ROUGE.items()}


def bleu(predictions: Sequence[str], references: References) -> float:
    """Corpus BLEU from 0 to 100, by sacrebleu with its standard settings (13a tokens, exponential smoothing).

    It is no mean over texts: for intervals, give `paired_bootstrap` a statistic of (prediction, reference) pairs.

    >>> round(bleu(["a b c d e"], ["a b c d f"]), 3)  # 100 · (4/5 · 3/4 · 2/3 · 1/2)^¼
    66.874
    """
    streams = _streams(paired_references(predictions, references))
    return float(need("sacrebleu", extra="measure").metrics.BLEU().corpus_score(list(predictions), streams).score)


def _streams(groups: list[list[str]]) -> list[list[str | None]]:
    """The first references of all texts, then the second ones, …; None where a text has no more."""
    return [
        [group[number] if number < len(group) else None for group in groups]
        for number in range(max(len(group) for group in groups))
    ]
