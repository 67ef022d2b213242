from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import caption_words, cider, cider_d, cider_d_per_text, cider_per_text

SCITLDR = json.loads((Path(__file__).parent / "data" / "scitldr-12.json").read_text(encoding="utf-8"))

CAPTIONS = [
    (
        "a brown horse stands in a field . the horse is brown . the horse is brown .",
        ["a brown horse grazes in a green field near a wooden fence .", "two horses stand in a field ."],
    ),
    ("a man rides a wave on a white surfboard", ["a man rides a wave on a white surfboard"]),
    ("people", ["a group of people wait at a bus stop", "several people stand beside the road in the rain"]),
    ("", ["an empty street at night"]),
    (
        "two dogs play with a red ball in the park while a man watches them from a bench",
        ["two dogs play in the park", "dogs chase a red ball", "a man on a bench watches two dogs play"],
    ),
    ("the the the the the the", ["the clock on the tower shows noon"]),
    ("a table with a red apple", ["a red apple lies on a table with a white cloth"]),
]
# From Cider of pycocoevalcap 1.2.
CAPTIONS_CIDER_D = [
    0.5833669758455887,
    10.0,
    0.4047699354032146,
    0.0,
    0.4871206447128812,
    0.3252811150321142,
    3.913178179376528,
]


def naive_cider(predictions: list[str], references: list[list[str]], d: bool) -> list[float]:
    """CIDEr and CIDEr-D by loops over dictionaries, equation by equation."""

    def ngrams(text: str, n: int) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    scores = []
    for prediction, group in zip(predictions, references, strict=True):
        total = 0.0
        for n in range(1, 5):

            def vector(text: str, n: int = n) -> dict[tuple[str, ...], float]:
                weights = {}
                for ngram, count in ngrams(text, n).items():
                    items = sum(any(ngram in ngrams(reference, n) for reference in other) for other in references)
                    weights[ngram] = count * math.log(len(references) / max(1, items))
                return weights

            ours = vector(prediction)
            for reference in group:
                theirs = vector(reference)
                norms = math.hypot(*ours.values()) * math.hypot(*theirs.values())
                if norms == 0:
                    continue
                dot = sum((min(ours[g], theirs[g]) if d else ours[g]) * theirs[g] for g in ours if g in theirs)
                value = dot / norms
                if d:
                    lengths = [max(len(text.split()) - 1, 0) for text in (prediction, reference)]
                    value *= 10 * math.exp(-((lengths[0] - lengths[1]) ** 2) / 72)
                total += value / len(group) / 4
        scores.append(total)
    return scores


def test_cider_d_of_captions_against_pycocoevalcap() -> None:
    predictions, references = zip(*CAPTIONS, strict=True)
    values = cider_d_per_text(predictions, references, tokenize=str.split)
    assert values.tolist() == pytest.approx(CAPTIONS_CIDER_D, abs=1e-6)
    assert cider_d(predictions, references, tokenize=str.split) == pytest.approx(2.244816692910047, abs=1e-6)


def test_cider_d_of_real_summaries_against_pycocoevalcap() -> None:
    predictions = [item["prediction"].lower() for item in SCITLDR["items"]]
    references = [[text.lower() for text in item["references"]] for item in SCITLDR["items"]]
    values = cider_d_per_text(predictions, references, tokenize=str.split)
    assert values.tolist() == pytest.approx(SCITLDR["expected"]["cider_d"], abs=1e-6)


def test_plain_cider_of_captions_against_loops() -> None:
    predictions, references = (list(column) for column in zip(*CAPTIONS, strict=True))
    expected = naive_cider(predictions, references, d=False)
    assert cider_per_text(predictions, references, tokenize=str.split).tolist() == pytest.approx(expected, abs=1e-12)
    assert cider(predictions, references, tokenize=str.split) == pytest.approx(sum(expected) / 7, abs=1e-12)
    assert expected[1] == pytest.approx(1)  # a copy


few_words = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


@given(
    st.lists(st.tuples(few_words, st.lists(few_words, min_size=1, max_size=3)), min_size=1, max_size=6), st.booleans()
)
def test_cider_against_loops(items: list[tuple[str, list[str]]], d: bool) -> None:
    predictions, references = [p for p, _ in items], [r for _, r in items]
    score = cider_d_per_text if d else cider_per_text
    values = score(predictions, references, tokenize=str.split)
    assert values.tolist() == pytest.approx(naive_cider(predictions, references, d), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man's dog can't swim.", ["a", "man", "'s", "dog", "ca", "n't", "swim"]),
        ("They're here, we've gone: I'd go!", ["they", "'re", "here", "we", "'ve", "gone", "i", "'d", "go"]),
        ("A close-up of a 3.5 inch disc", ["a", "close-up", "of", "a", "3.5", "inch", "disc"]),
        ('"Stop" (says the sign) - twice...', ["stop", "says", "the", "sign", "twice"]),
    ],
)
def test_caption_words(text: str, words: list[str]) -> None:
    assert caption_words(text) == words


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="predictions and references must be as many, not 1 and 2"):
        cider(["a"], ["b", "c"])
