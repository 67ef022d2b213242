from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad import metrics
from scalegrad.metrics import texts as module

texts_of_few_words = st.lists(
    st.lists(st.sampled_from(["a", "b", "a.", "c,", "\n", "", "don't"]), max_size=30).map(" ".join), max_size=8
)


def naive_repetition(texts: list[str]) -> dict[str, float]:
    """The definition, one text and one n-gram at a time."""
    sums, kept = [0.0] * 4, 0
    for text in texts:
        tokens = re.findall(r"\w+|[^\w\s]|\n", text)
        if len(tokens) <= 3:
            continue
        kept += 1
        for n in range(1, 5):
            ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
            sums[n - 1] += 1 - len(set(ngrams)) / len(ngrams)
    means = {f"rep_{n}": sums[n - 1] / kept if kept else math.nan for n in range(1, 5)}
    return means | {"uniq_w": len({item for text in texts for item in text.split(" ")}), "n_texts": kept}


@given(texts_of_few_words)
def test_repetition_against_the_definition(texts: list[str]) -> None:
    assert metrics.repetition(texts) == pytest.approx(naive_repetition(texts), abs=1e-12, nan_ok=True)


@given(texts_of_few_words)
def test_per_text_values_are_those_of_each_text_alone(texts: list[str]) -> None:
    values = metrics.repetition_per_text(texts)
    for n in range(1, 5):
        alone = [naive_repetition([text])[f"rep_{n}"] for text in texts]
        np.testing.assert_allclose(values[f"rep_{n}"], alone, atol=1e-12)


@given(st.lists(texts_of_few_words, max_size=4), st.integers(0, 6))
def test_keeping_only_hashes_changes_nothing(parts: list[list[str]], known: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KNOWN_ITEMS", known)
        counter = metrics.RepetitionCounter()
        for part in parts:
            counter.add(part)
        result = counter.result()
    everything = [text for part in parts for text in part]
    assert result == pytest.approx(naive_repetition(everything), abs=1e-12, nan_ok=True)


def test_repetition_takes_any_iterable() -> None:
    assert metrics.repetition(iter(["a b a b"])) == metrics.repetition(("a b a b",))


def test_three_tokens_are_left_out_and_four_are_not() -> None:
    assert math.isnan(metrics.repetition(["a a a"])["rep_1"])
    assert metrics.repetition(["a a a", "a b c d"])["rep_1"] == 0
    assert metrics.repetition(["a a a", "a b c d"])["n_texts"] == 1


def test_left_out_texts_still_count_for_uniq_w() -> None:
    assert metrics.repetition(["x", "a b c d"])["uniq_w"] == 5


def test_bad_texts_are_named() -> None:
    with pytest.raises(ValueError, match="texts must be a collection of texts, not one text"):
        metrics.repetition("one text")
    with pytest.raises(ValueError, match=r"texts\[1\] must be a text \(str\), not int"):
        metrics.repetition(["a", 3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("spaced", "tight"),
    [
        ("Stop . Why ? Go ! Yes , sir", "Stop. Why? Go! Yes, sir"),
        ("the dogs ' food", "the dogs'food"),
        ("I 'm sure it is n't", "I'm sure it isn't"),
        ("We do not know", "We don't know"),
        ("he 's , they 've and you 're", "he's, they've and you're"),
        ("Do not", "Do not"),  # only in lower case, after a space
        ("it ' s", "it's"),  # the lone apostrophe goes first
    ],
)
def test_clean_up_spaces(spaced: str, tight: str) -> None:
    assert metrics.clean_up_spaces(spaced) == tight
