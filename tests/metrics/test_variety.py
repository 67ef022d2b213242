from __future__ import annotations

import math
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import compression_ratio, diversity

some_texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=14).map(" ".join), max_size=7)


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]|\n", text)


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


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_compression_ratio_streams_what_zlib_gives_at_once(texts: list[str]) -> None:
    data = "".join(text + "\n" for text in texts).encode()
    assert compression_ratio(texts) == pytest.approx(len(data) / len(zlib.compress(data, 9)), rel=1e-12)


def test_nothing_to_measure_is_not_a_number() -> None:
    assert math.isnan(compression_ratio([]))
    assert math.isnan(diversity([]))
