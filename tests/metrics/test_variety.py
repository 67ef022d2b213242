from __future__ import annotations

import math
import re
import zlib
from collections import Counter

import numpy as np
import pytest
import sacrebleu
from hypothesis import assume, given
from hypothesis import strategies as st

from scalegrad.metrics import compression_ratio, distinct_n, diversity, self_bleu, zipf_coefficient

some_texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=14).map(" ".join), max_size=7)


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]|\n", text)


@given(some_texts, st.integers(1, 5))
def test_distinct_n_against_sets(texts: list[str], n: int) -> None:
    ngrams = [tuple(tokens_of(text)[i : i + n]) for text in texts for i in range(len(tokens_of(text)) - n + 1)]
    expected = len(set(ngrams)) / len(ngrams) if ngrams else math.nan
    assert distinct_n(texts, n) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(some_texts)
def test_self_bleu_against_sacrebleu(texts: list[str]) -> None:
    kept = [text for text in texts if len(text.split()) >= 4]
    assume(len(kept) >= 2)
    bleu = sacrebleu.metrics.BLEU(smooth_method="floor", smooth_value=0.1, tokenize="none", effective_order=False)
    scores = [bleu.sentence_score(text, kept[:i] + kept[i + 1 :]).score / 100 for i, text in enumerate(kept)]
    assert self_bleu(texts) == pytest.approx(np.mean(scores), abs=1e-9)


def test_self_bleu_needs_two_texts() -> None:
    assert math.isnan(self_bleu(["a b c d", "a b"]))
    assert self_bleu(["a b c d", "a b c d", "a b"]) == pytest.approx(1)


@given(some_texts)
def test_diversity_against_the_definition(texts: list[str]) -> None:
    kept = [tokens_of(text) for text in texts if len(tokens_of(text)) > 3]
    expected = 1.0
    for n in (2, 3, 4):
        ratios = []
        for tokens in kept:
            ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
            ratios.append(len(set(ngrams)) / len(ngrams))
        expected *= sum(ratios) / len(ratios) if ratios else math.nan
    assert diversity(texts) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(some_texts, st.integers(2, 6))
def test_zipf_against_a_fitted_line(texts: list[str], top: int) -> None:
    counts = sorted(Counter(token for text in texts for token in tokens_of(text)).values(), reverse=True)[:top]
    if len(counts) < 2:
        assert math.isnan(zipf_coefficient(texts, top))
    else:
        slope = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)[0]
        assert zipf_coefficient(texts, top) == pytest.approx(-slope, abs=1e-9)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_compression_ratio_streams_what_zlib_gives_at_once(texts: list[str]) -> None:
    data = "".join(text + "\n" for text in texts).encode()
    assert compression_ratio(texts) == pytest.approx(len(data) / len(zlib.compress(data, 9)), rel=1e-12)


def test_nothing_to_measure_is_not_a_number() -> None:
    assert math.isnan(distinct_n([], 1))
    assert math.isnan(compression_ratio([]))
    assert math.isnan(zipf_coefficient(["a a"]))
    assert math.isnan(self_bleu([]))
    assert math.isnan(diversity([]))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        distinct_n(["a"], 0)
    with pytest.raises(ValueError, match="top must be at least 2, not 1"):
        zipf_coefficient(["a"], top=1)
    with pytest.raises(ValueError, match="longest must be at least 1, not 0"):
        self_bleu(["a"], longest=0)
